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
    parser.add_argument(
        "--stand-ins",
        type=int,
        default=3,
        help="how many times other statements play the confidential part (default 3)",
    )
    parser.add_argument(
        "--out", help="write a page with pictures here; a plan that was stopped goes on from OUT.parts.jsonl"
    )
    parser.add_argument("--force", action="store_true", help="replace the file of --out, if it is there")
    add_settings(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Rehearse."""
    from pathlib import Path

    from veilgraph.cli.terminal import note
    from veilgraph.errors import ConfigError, UsageError
    from veilgraph.files import check_new, write_text
    from veilgraph.report.forecast import forecast
    from veilgraph.tune.rehearse import rehearse

    try:
        epsilons = [float(word) for word in options.epsilons.split(",")]
    except ValueError:
        raise ConfigError(
            f"--epsilons takes numbers with commas between, found {options.epsilons!r}."
        ) from None
    settings = chosen_settings(options)
    if {"epsilon", "noise_multiplier", "drop_confidential"} & settings.keys():
        raise UsageError("a plan tries several budgets: give them with --epsilons.")
    check_new(options.out, force=options.force)
    seed = int(settings.pop("seed", 0))
    keep = Path(f"{options.out}.parts.jsonl") if options.out else None
    found = rehearse(
        options.graph,
        epsilons,
        share=options.share,
        stand_ins=options.stand_ins,
        seed=seed,
        keep=keep,
        tell=note,
        **settings,
    )
    if keep is not None:
        write_text(Path(options.out), forecast(found))
        keep.unlink(missing_ok=True)
    return {"graph": options.graph, **found, "out": options.out}


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import note, out, table

    columns = ("", "MRR", "95 % interval", "better than dropping by", "Hits@10", "attacker right at most")
    rows = [
        (
            f"ε = {row['epsilon']:g}",
            row["mrr"],
            _between(row["interval"]),
            _between(row["gain_interval"]),
            row["hits@10"],
            None if row["ceiling"] is None else f"{100 * row['ceiling']:.1f} %",
        )
        for row in result["rows"]
    ]
    for name, key, reached in (
        ("confidential dropped", "dropped", "50.0 %"),
        ("dropped, the rest counted", "dropped_counted", "50.0 %"),
        ("no privacy", "no_privacy", "100.0 %"),
    ):
        own = result[key]
        if own is None:
            continue
        rows.append((name, own["mrr"], _between(own["interval"]), None, own["hits@10"], reached))
    rows.append(("by chance", result["chance"], None, None, None, None))
    table(columns, rows, "Rehearsed on unrestricted statements: figures of the stand-in confidential ones")
    out.print(result["advice"], markup=False)
    counts = result["statements"]
    parts = "; ".join(_stand_in(rules) for rules in result["stand_in"])
    judged = ", ".join(f"{number:,}" for number in counts["judged"])
    if result["unit"] != result["rehearsed_unit"]:
        note(
            f"The unit is {result['unit']}, and was rehearsed as {result['rehearsed_unit']}: each of a group had the whole group's cap, so "
            "more statements were learnt from than will be. Expect less than these figures."
        )
    note(f"Stand-ins: {parts}. {judged} statements judged.")
    note("No confidential statement was read; the real ones may be easier or harder to learn.")
    if result["out"]:
        note(f"Pictures: {result['out']}")


def _between(interval: list[float] | None) -> str | None:
    return None if interval is None else f"{interval[0]:.3f} – {interval[1]:.3f}"


def _stand_in(rules: list[dict[str, Any]]) -> str:
    """What plays the confidential part, in words."""
    names = [str(rule["relation"]) for rule in rules if "relation" in rule]
    return f"relation {', '.join(names)}" if names else "statements drawn at random"
