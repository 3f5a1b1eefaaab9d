"""A run's vectors for other tools: ``export(run, "vectors", format="parquet")``."""

from __future__ import annotations

from pathlib import Path

from veilgraph import registry
from veilgraph.disk import explained
from veilgraph.errors import UsageError
from veilgraph.folders import made
from veilgraph.run.formats.base import Format
from veilgraph.run.formats.counts import write_counts
from veilgraph.run.run import Run


def export(run: Run, out: str | Path, format: str = "parquet") -> Path:
    """Write the vectors to a new folder; returns it. Post-processing: it costs nothing beyond the run's own guarantee."""
    chosen: Format = registry.find("formats", format)()
    target = Path(out)
    if target.exists():
        raise UsageError(f"{out} exists already. Choose another --out.")
    chosen.refuse(run)
    with made(target) as draft, explained(target):
        chosen.write(run, draft)
        if chosen.counts is not None:
            write_counts(run.prior, run.entities, run.relations, draft, chosen.counts)
    return target
