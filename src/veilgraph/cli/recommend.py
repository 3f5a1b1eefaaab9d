"""veil recommend RUN --user U --top 10  ·  veil recommend RUN"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument(
        "--user", help="whom to recommend to; without it, how good lists are on the test split"
    )
    parser.add_argument("--top", type=int, default=10, help="items in a list (default 10)")
    parser.add_argument("--relation", help="from users to items (default: the commonest)")
    parser.add_argument("--known", action="store_true", help="lists may repeat what the user has")
    parser.add_argument("--graph", help="the graph, if it has moved")


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Recommend, or judge."""
    from veilgraph.recommend import judge, recommend
    from veilgraph.run.run import Run

    chosen = {"top": options.top, "relation": options.relation, "graph": options.graph}
    opened = Run.open(options.run)
    if options.user is None:
        return judge(opened, **chosen)
    return recommend(opened, options.user, known=options.known, **chosen)


def show(result: list[dict[str, Any]]) -> None:
    """For people."""
    from veilgraph.cli.terminal import table

    columns = list(result[0]) if result else ["item"]
    table(columns, [[row[column] for column in columns] for row in result])
