"""veil resume RUN"""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.cli.train import show, summary

__all__ = ["arguments", "run", "show"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("run", help="the run folder of a training that was stopped")
    parser.add_argument("--graph", help="the graph, if it has moved")
    parser.add_argument(
        "--moved",
        action="store_true",
        help="the folder was moved or restored, and no other copy of it will go on",
    )
    parser.add_argument(
        "--checkpoint-seconds", type=float, default=20.0, help="seconds between checkpoints (default 20)"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Continue to the end."""
    from veilgraph.cli.terminal import TrainingProgress
    from veilgraph.train import resume

    finished = resume(
        options.run,
        graph=options.graph,
        moved=options.moved,
        listener=TrainingProgress(),
        checkpoint_seconds=options.checkpoint_seconds,
    )
    return summary(finished)
