"""veil predict RUN HEAD RELATION  ·  veil predict RUN '?' RELATION TAIL  ·  veil predict RUN --describe TEXT --relation RELATION"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument("head", nargs="?", help="an entity, or ? to ask for heads")
    parser.add_argument("relation", nargs="?", help="a relation")
    parser.add_argument("tail", nargs="?", help="an entity, if the head is ?")
    parser.add_argument(
        "--describe",
        metavar="TEXT",
        help="an entity that was never in the graph: ask about it with --relation, or see where it ranks among a question's answers",
    )
    parser.add_argument(
        "--relation", dest="about", metavar="RELATION", help="of what is described, to its tails"
    )
    parser.add_argument(
        "--side",
        choices=("tail", "head"),
        default="tail",
        help="what is asked for with --relation (default tail)",
    )
    parser.add_argument("--top", type=int, default=10, help="how many answers (default 10)")
    parser.add_argument("--graph", help="the graph, if it has moved")
    parser.add_argument("--known", action="store_true", help="also show facts the graph already holds")


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Answer."""
    from veilgraph.cli.terminal import note
    from veilgraph.errors import UsageError
    from veilgraph.run.predict import DESCRIBED
    from veilgraph.run.run import Run

    tail = None if options.tail in (None, "?") else options.tail
    head = None if options.head in (None, "?") else options.head
    relation = options.relation or options.about
    if options.about is not None:
        if options.describe is None or options.head is not None:
            raise UsageError(
                "--relation belongs to --describe: veil predict RUN --describe TEXT --relation RELATION."
            )
        head, tail = (DESCRIBED, None) if options.side == "tail" else (None, DESCRIBED)
    if (head is None) == (tail is None) or relation is None:
        raise UsageError(
            "ask for one side: veil predict RUN HEAD RELATION, veil predict RUN '?' RELATION TAIL, or "
            "veil predict RUN --describe TEXT --relation RELATION."
        )
    opened = Run.open(options.run)
    if options.graph:
        opened = replace(opened, held=opened.graph(options.graph))
    answers = opened.predict(
        head, relation, tail, describe=options.describe, top=options.top, known=options.known
    )
    if not options.known and options.about is None and opened.known is None:
        note("The graph is not at hand, so answers may be facts that are already known.")
    return answers


def show(result: list[dict[str, Any]]) -> None:
    """For people."""
    from veilgraph.cli.terminal import table

    table(("entity", "rank", "score"), [(r["entity"], r["rank"], r["score"]) for r in result])
