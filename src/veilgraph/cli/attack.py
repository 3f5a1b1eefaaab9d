"""veil attack membership RUN"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("attack", choices=["membership"], help="which attack")
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument("--graph", help="the graph, if it has moved")
    parser.add_argument(
        "--count", type=int, default=2000, help="most members and non-members (default 2000 each)"
    )
    parser.add_argument(
        "--shadows", type=int, default=0, help="also train so many shadow runs and decide by likelihood ratio"
    )
    parser.add_argument("--seed", type=int, default=0, help="which statements are tried")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Attack."""
    from veilgraph.attack.membership import membership
    from veilgraph.runs import Run

    return membership(
        Run.open(options.run),
        graph=options.graph,
        count=options.count,
        shadows=options.shadows,
        seed=options.seed,
    )


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, table

    keys = ("guarantee", "epsilon", "members", "non_members", "attack")
    facts({key: result[key] for key in keys}, "membership: 0.5 is a coin")
    columns = ("auc", "tpr@fpr=0.01", "tpr@fpr=0.001")
    rows = []
    for name, found in result["attacks"].items():
        cells = []
        for column in columns:
            low, high = found[f"{column}_interval"]
            cells.append(f"{found[column]:.3f} [{low:.3f}, {high:.3f}]")
        rows.append((name, *cells))
    table(("attack", *columns), rows)
