"""veil extend RUN new_entities.tsv --out RUN2"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("run", help="a finished run that was trained with --text")
    parser.add_argument(
        "entities", help="«entity, text» lines (TSV): the new entities and their descriptions"
    )
    parser.add_argument("--out", help="the new run folder (default: RUN-extended)")
    parser.add_argument(
        "--public",
        action="store_true",
        help="these descriptions are public (needed where the run promises something)",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Add."""
    from veilgraph.run.extend import extend

    out = options.out or f"{options.run.rstrip('/')}-extended"
    return extend(options.run, options.entities, out=out, public=options.public)


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.account.statement import rounded_up
    from veilgraph.cli.terminal import facts

    epsilon = result["epsilon"]
    spent = "nothing is promised" if epsilon is None else f"{rounded_up(epsilon, 3)}, as before"
    facts({"entities added": result["added"], "ε": spent}, f"run {result['run']}")
