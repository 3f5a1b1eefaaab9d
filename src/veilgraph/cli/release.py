"""veil release GRAPH --epsilon 2 --out GRAPH2"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    from veilgraph.cli.flags import add_settings

    parser.add_argument("graph", help="a marked graph folder (veil mark)")
    parser.add_argument("--out", required=True, help="the folder to make: a graph that may be published")
    parser.add_argument(
        "--format",
        action="append",
        choices=("tsv", "nt"),
        help="also as text: tsv (if not given), nt (RDF-star); more than once",
    )
    add_settings(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Ask, weigh, write."""
    from veilgraph.cli.flags import chosen_settings
    from veilgraph.cli.terminal import TrainingProgress, note
    from veilgraph.config import TrainConfig
    from veilgraph.errors import UsageError
    from veilgraph.train.publish import release

    settings = chosen_settings(options)
    epsilon = TrainConfig.of(settings).epsilon
    if epsilon is None:
        raise UsageError("a released graph needs a promise: --epsilon 2, or --at-most-sure 0.88.")
    settings = {
        key: value for key, value in settings.items() if key not in ("epsilon", "at_most_sure", "mechanism")
    }
    progress = TrainingProgress()
    made = release(
        options.graph,
        epsilon=epsilon,
        out=options.out,
        formats=tuple(options.format or ("tsv",)),
        listener=progress,
        explain=note,
        **settings,
    )
    progress.close()
    return made


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, note, out

    out.print(result["statement"], markup=False)
    facts({key: value for key, value in result.items() if key != "statement"}, "released")
    note(
        f"veil train {result['out']} learns from it as from any graph. Whoever sees an answer about a statement is right about it as often "
        "as the promise allows: it is reached, not only bounded."
    )
