"""The page of a rehearsal: what is lost at which ε."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilgraph.pictures import lines
from veilgraph.report.page import page, paragraph, table


def forecast(found: Mapping[str, Any]) -> str:
    """A self-contained page with a table and a picture."""
    rows = found["rows"]
    dropped = {"confidential dropped": found["dropped"]}
    if found["dropped_counted"] is not None:
        dropped["dropped, the rest counted"] = found["dropped_counted"]
    series = {"with privacy": [(row["epsilon"], row["mrr"]) for row in rows]}
    if rows[0]["interval"] is not None:
        for end, name in enumerate(("95 % interval, from", "95 % interval, to")):
            series[name] = [(row["epsilon"], row["interval"][end]) for row in rows]
    picture = lines(
        series,
        "ε (logarithmic)",
        "MRR",
        "Expected MRR of confidential statements by ε, between dropping them and no privacy",
        across={
            "no privacy": found["no_privacy"]["mrr"],
            "confidential dropped": max(one["mrr"] for one in dropped.values()),
            "chance": found["chance"],
        },
        logarithmic=True,
        pale=tuple(name for name in series if name != "with privacy"),
    )
    reached = [(row["epsilon"], row["ceiling"]) for row in rows if row["ceiling"] is not None]
    harm = lines(
        {"at most": reached},
        "ε (logarithmic)",
        "how often an attacker is right",
        "How often whoever must tell whether one unit was in is right at most, by ε; 0.5 is a coin",
        across={"a coin": 0.5, "always": 1.0},
        logarithmic=True,
    )
    keys = (
        "noise_multiplier",
        "count_deviation",
        "mrr",
        "interval",
        "hits@10",
        "mr",
        "gain_interval",
        "ceiling",
    )
    cells = [(f"{row['epsilon']:g}", *(_shown(row[key]) for key in keys)) for row in rows]
    for name, own in {**dropped, "no privacy": found["no_privacy"]}.items():
        cells.append((name, *(_shown(own.get(k)) for k in keys)))
    counts = found["statements"]
    return page(
        "What privacy would cost here",
        found["advice"],
        "A rehearsal, not a promise: unrestricted statements played the confidential part. No confidential statement was read.",
        [
            ("What it is good for", picture),
            ("What an attacker reaches at most", harm),
            (
                "Table",
                table(
                    (
                        "ε",
                        "noise of steps",
                        "noise of counts",
                        "MRR",
                        "95 % interval",
                        "Hits@10",
                        "mean rank",
                        "better than dropping by (95 %)",
                        "attacker right at most",
                    ),
                    cells,
                ),
            ),
            (
                "How it was done",
                paragraph(
                    f"{len(counts['judged'])} times other unrestricted statements stood in for confidential ones: "
                    f"{_many(counts['stand_in'])} of them, beside {_many(counts['unrestricted'])} that stayed unrestricted; "
                    f"{_many(counts['judged'])} judged. Figures are means, intervals are over the stand-ins. By chance MRR would be "
                    f"{found['chance']:.4f}.{_other_unit(found)}"
                ),
            ),
        ],
        "Written by veil plan.",
    )


def _other_unit(found: Mapping[str, Any]) -> str:
    """What a rehearsal with another unit than the marked one leaves out."""
    if found["unit"] == found["rehearsed_unit"]:
        return ""
    return (
        f" The unit is {found['unit']}, and was rehearsed as {found['rehearsed_unit']}: each of a group had the whole group's cap, so more "
        "statements were learnt from than will be. Expect less than these figures."
    )


def _many(counts: list[int]) -> str:
    return ", ".join(f"{count:,}" for count in counts)


def _shown(value: float | list[float] | None) -> float | str:
    if isinstance(value, list):
        return f"{value[0]:.3f} – {value[1]:.3f}"
    return "—" if value is None else value
