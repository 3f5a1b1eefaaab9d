"""veil predict RUN HEAD RELATION  ·  veil predict RUN '?' RELATION TAIL"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument("head", help="an entity, or ? to ask for heads")
    parser.add_argument("relation", help="a relation")
    parser.add_argument("tail", nargs="?", help="an entity, if the head is ?")
    parser.add_argument("--top", type=int, default=10, help="how many answers (default 10)")
    parser.add_argument("--graph", help="the graph, if it has moved")
    parser.add_argument("--known", action="store_true", help="also show facts the graph already holds")


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Answer."""
    from veilgraph.cli.terminal import note
    from veilgraph.errors import UsageError
    from veilgraph.runs import Run

    tail = None if options.tail in (None, "?") else options.tail
    head = None if options.head == "?" else options.head
    if (head is None) == (tail is None):
        raise UsageError(
            "ask for one side: veil predict RUN HEAD RELATION, or veil predict RUN '?' RELATION TAIL."
        )
    opened = Run.open(options.run)
    if options.graph:
        opened = replace(opened, held=opened.graph(options.graph))
    answers = opened.predict(head, options.relation, tail, top=options.top, known=options.known)
    if not options.known and opened.known is None:
        note("The graph is not at hand, so answers may be facts that are already known.")
    return answers


def show(result: list[dict[str, Any]]) -> None:
    """For people."""
    from veilgraph.cli.terminal import table

    table(("entity", "rank", "score"), [(r["entity"], r["rank"], r["score"]) for r in result])
