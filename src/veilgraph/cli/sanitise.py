"""veil sanitise RUN --with balanced --attribute gender"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument(
        "--with",
        dest="chain",
        default="balanced",
        help="sanitisers, one after another, with their settings: shuffle,random:keep=3 (veil list sanitisers)",
    )
    parser.add_argument("--attribute", help="what lists should not tell (balanced needs it), e.g. gender")
    parser.add_argument(
        "--everyone-told",
        action="store_true",
        help="learn from the attribute although it is marked confidential",
    )
    parser.add_argument("--relation", help="from users to items (default: the commonest)")
    parser.add_argument(
        "--catalogue",
        help="the public list of all items: a file of names (exponential needs one), or how their names begin (item/)",
    )
    parser.add_argument("--top", type=int, default=10, help="items in a list (default 10)")
    parser.add_argument("--known", action="store_true", help="lists may repeat what the user has")
    parser.add_argument("--graph", help="the graph, if it has moved")
    parser.add_argument("--seed", type=int, help="for experiments: repeatable lists, which no ε holds for")
    parser.add_argument("--out", help="write the lists here (TSV: user, item, rank)")
    parser.add_argument("--force", action="store_true", help="replace the file of --out, if it is there")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Make lists."""
    from pathlib import Path

    from veilgraph.files import cell, check_new, write_text
    from veilgraph.run.run import Run
    from veilgraph.sanitise.lists import sanitised

    check_new(options.out, force=options.force)
    found = sanitised(
        Run.open(options.run),
        options.chain,
        attribute=options.attribute,
        relation=options.relation,
        top=options.top,
        repeat=options.known,
        graph=options.graph,
        everyone_told=options.everyone_told,
        listed=options.catalogue,
        seed=options.seed,
    )
    if options.out:
        rows = [
            f"{cell(user)}\t{cell(item)}\t{rank}"
            for user, items in found["lists"].items()
            for rank, item in enumerate(items, 1)
        ]
        write_text(Path(options.out), "\n".join(["user\titem\trank", *rows]) + "\n")
    return found


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, table

    facts({key: value for key, value in result.items() if key != "lists" and value is not None})
    table(("user", "list"), [(user, ", ".join(items)) for user, items in list(result["lists"].items())[:3]])
