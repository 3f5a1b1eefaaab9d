"""The page of a rehearsal: what is lost at which ε."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilgraph.report.page import lines, page, paragraph, table


def forecast(found: Mapping[str, Any]) -> str:
    """A self-contained page with a table and a picture."""
    rows = found["rows"]
    picture = lines(
        {"with privacy": [(row["budget"], row["mrr"]) for row in rows]},
        "ε (logarithmic)",
        "MRR",
        "Expected MRR of confidential statements by ε, between dropping them and no privacy",
        across={"no privacy": found["no_privacy"]["mrr"], "confidential dropped": found["dropped"]["mrr"]},
        logarithmic=True,
    )
    keys = ("noise_multiplier", "count_deviation", "mrr", "hits@10", "mr")
    cells = [(f"{row['budget']:g}", *(_shown(row[key]) for key in keys)) for row in rows]
    for name, key in (("confidential dropped", "dropped"), ("no privacy", "no_privacy")):
        cells.append((name, *(_shown(found[key][k]) for k in keys)))
    best, worst = rows[-1], rows[0]
    return page(
        "What privacy would cost here",
        f"Rehearsed on unrestricted statements: MRR {worst['mrr']:.3f} at ε = {worst['budget']:g}, {best['mrr']:.3f} at "
        f"ε = {best['budget']:g}; {found['dropped']['mrr']:.3f} if confidential statements are dropped, "
        f"{found['no_privacy']['mrr']:.3f} without privacy.",
        "A rehearsal, not a promise: unrestricted statements played the confidential part. No confidential statement was read.",
        [
            ("Picture", picture),
            (
                "Table",
                table(("ε", "noise of steps", "noise of counts", "MRR", "Hits@10", "mean rank"), cells),
            ),
            (
                "How it was done",
                paragraph(
                    f"{found['statements']['stand_in']:,} unrestricted statements stood in for confidential ones, "
                    f"{found['statements']['unrestricted']:,} stayed unrestricted."
                ),
            ),
        ],
        "Written by veil plan.",
    )


def _shown(value: float | None) -> float | str:
    return "—" if value is None else value
