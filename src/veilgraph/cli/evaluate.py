"""veil evaluate RUN"""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.cli.flags import byte_count

KINDS = ("confidential", "unrestricted", "new_head", "new_tail", "both_new", "new_end", "known_end")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument("--split", default="test", help="which statements to rank (default test)")
    parser.add_argument("--graph", help="the graph, if it has moved")
    parser.add_argument(
        "--memory", type=byte_count, default=1 << 28, metavar="SIZE", help="most memory for scores, e.g. 512M"
    )
    parser.add_argument(
        "--details", action="store_true", help="also per relation and per 1-1/1-N/N-1/N-N class"
    )
    parser.add_argument("--threads", type=int, help="processor threads")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Rank and summarise."""
    from veilgraph.cli.terminal import RankingProgress
    from veilgraph.run.evaluate import evaluate
    from veilgraph.run.run import Run

    opened = Run.open(options.run)
    return evaluate(
        opened,
        options.split,
        graph=options.graph,
        memory=options.memory,
        details=options.details,
        threads=options.threads,
        progress=RankingProgress(),
    )


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, table

    columns = ("mrr", "mr", "hits@1", "hits@3", "hits@10")
    facts(
        {k: v for k, v in result.items() if k != "split" and not isinstance(v, dict)},
        f"split {result['split']}",
    )
    popular = result.get("popular", {})
    kinds = [(k, result[k]) for k in KINDS if k in result]
    if kinds:
        table(
            ("statements", "queries", *columns, "mrr by chance", "mrr of popular answers"),
            [
                (
                    k,
                    m["queries"],
                    *(m[c] for c in columns),
                    m.get("chance_mrr"),
                    popular.get(k, {}).get("mrr"),
                )
                for k, m in kinds
            ],
        )
    for block in ("classes", "relations"):
        if block in result:
            rows = [(name, m["queries"], *(m[c] for c in columns)) for name, m in result[block].items()]
            table((block, "queries", *columns), rows)
