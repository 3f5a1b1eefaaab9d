"""The run folder is the product: resumable, verifiable, queryable by name, exportable, servable; nothing in it is pickled.

files     every file by name, and who may see it · facts, commitment: what a run says of its graph · run: opening and writing
evaluate, predict, describe: what it answers · verify: its certificate · extend: new entities · formats: for other tools
"""

from __future__ import annotations

from veilgraph.run.run import Run, open_run

__all__ = ["Run", "open_run"]
