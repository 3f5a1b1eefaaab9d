"""veil experiment NAME [--quick] [--seeds 5]"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("name", help="which one (veil list experiments), or all")
    parser.add_argument(
        "--quick", action="store_true", help="fewer models, epochs and seeds: a look, not the table"
    )
    parser.add_argument("--seeds", type=int, default=5, help="repetitions (default 5; --quick takes fewer)")
    parser.add_argument("--epochs", type=int, help="of every training (default: as published)")
    parser.add_argument(
        "--processes", type=int, help="trainings at a time, one thread each (default: all cores)"
    )
    parser.add_argument(
        "--out", default="experiments", help="where runs, tables and figures go (default experiments)"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Conduct."""
    from veilgraph.cli.terminal import note
    from veilgraph.errors import InputError
    from veilgraph_experiments import available, conduct, find

    chosen = available().values() if options.name == "all" else [find(options.name)]
    found = []
    for experiment in chosen:
        try:
            found.append(
                conduct(
                    experiment,
                    options.out,
                    quick=options.quick,
                    seeds=options.seeds,
                    epochs=options.epochs,
                    processes=options.processes,
                    tell=note,
                )
            )
        except InputError as error:
            if options.name != "all":
                raise
            note(f"{experiment.name}: left out. {error}")
    return (
        found[0] if options.name != "all" else {"name": "all", "experiments": found, "rows": [], "paper": []}
    )


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, note, out, table

    for found in result.get("experiments", [result]):
        same, columns = _split(found["rows"])
        if same:
            facts(same, found["name"])
        room = columns[: max(4, out.width // 12)]
        table(room, [[row.get(column) for column in room] for row in found["rows"]], found["name"])
        if len(room) < len(columns):
            note(f"{len(columns) - len(room)} more columns are in {found['out']}/table.csv")
        note(
            f"{found['trainings']} trainings, {found['seconds']:.0f} s; the paper's numbers and a figure: {found['out']}"
        )


def _split(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """What is the same in all rows of a long table, and the columns where they differ."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    same = {}
    if len(rows) > 3:
        same = {key: rows[0].get(key) for key in columns if len({str(row.get(key)) for row in rows}) == 1}
    return same, [column for column in columns if column not in same]
