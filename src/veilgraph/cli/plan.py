"""veil plan GRAPH --epsilons 0.5,1,2,4,8 --out plan.html"""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.cli.flags import add_settings, chosen_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("graph", help="a marked graph folder")
    parser.add_argument("--epsilons", default="0.5,1,2,4,8", help="budgets to rehearse (default 0.5,1,2,4,8)")
    parser.add_argument(
        "--share", type=float, default=0.5, help="stand-in share, where marks do not go by relation"
    )
    parser.add_argument("--out", help="write a page with the picture here")
    add_settings(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Rehearse."""
    from pathlib import Path

    from veilgraph.cli.terminal import note
    from veilgraph.errors import UsageError
    from veilgraph.files import check_file, write_text
    from veilgraph.report.forecast import forecast
    from veilgraph.train.rehearse import rehearse

    try:
        epsilons = [float(word) for word in options.epsilons.split(",")]
    except ValueError:
        raise UsageError(
            f"--epsilons takes numbers with commas between, found {options.epsilons!r}."
        ) from None
    settings = chosen_settings(options)
    if {"epsilon", "noise_multiplier", "drop_confidential"} & settings.keys():
        raise UsageError("a plan tries several budgets: give them with --epsilons.")
    check_file(options.out)
    seed = int(settings.pop("seed", 0))
    found = rehearse(options.graph, epsilons, share=options.share, seed=seed, tell=note, **settings)
    if options.out:
        write_text(Path(options.out), forecast(found))
    return {"graph": options.graph, **found, "out": options.out}


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import note, table

    columns = ("", "noise of steps", "noise of counts", "MRR", "Hits@10", "mean rank")
    keys = ("noise_multiplier", "count_deviation", "mrr", "hits@10", "mr")
    rows = [(f"ε = {row['budget']:g}", *(row[key] for key in keys)) for row in result["rows"]]
    for name, key in (("confidential dropped", "dropped"), ("no privacy", "no_privacy")):
        rows.append((name, *(result[key][k] for k in keys)))
    table(columns, rows, "Rehearsed on unrestricted statements: figures of the stand-in confidential ones")
    counts = result["statements"]
    note(
        f"Stand-ins: {_stand_in(result['stand_in'])}: {counts['stand_in']:,} statements to learn from beside {counts['unrestricted']:,} "
        f"unrestricted ones, {counts['judged']:,} to judge by."
    )
    note("No confidential statement was read; the real ones may be easier or harder to learn.")
    if result["out"]:
        note(f"Picture: {result['out']}")


def _stand_in(rules: list[dict[str, Any]]) -> str:
    """What plays the confidential part, in words."""
    names = [str(rule["relation"]) for rule in rules if "relation" in rule]
    return f"relation {', '.join(names)}" if names else "statements drawn at random"
