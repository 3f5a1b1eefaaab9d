"""The command line: one file per verb, no logic. ``main`` imports only the verb that was asked for."""

from __future__ import annotations

from veilgraph.cli.main import EXIT_CODES, VERBS, main

__all__ = ["EXIT_CODES", "VERBS", "main"]
