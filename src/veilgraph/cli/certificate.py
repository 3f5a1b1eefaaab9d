"""veil certificate RUN · veil certificate verify RUN"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument(
        "words", nargs="+", metavar="[verify] RUN", help="a finished run folder, verify before it"
    )
    parser.add_argument("--graph", help="the graph, if it has moved (verify compares its marks)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Read, or verify."""
    from veilgraph.classify import folder as labels
    from veilgraph.errors import UsageError
    from veilgraph.layout import RELEASED
    from veilgraph.run.run import Run
    from veilgraph.run.verify import verify
    from veilgraph.train.publish import read_certificate as read_release
    from veilgraph.train.publish import verify_release

    *before, folder = options.words
    if before not in ([], ["verify"]):
        raise UsageError(
            f"expected «veil certificate RUN» or «veil certificate verify RUN», found {options.words}."
        )
    if labels.is_one(Path(folder)):
        return labels.verify(Path(folder)) if before else labels.read_certificate(Path(folder))
    if (Path(folder) / RELEASED).is_file():
        return verify_release(folder) if before else read_release(folder)
    opened = Run.open(folder)
    if before:
        return verify(opened, options.graph)
    return opened.certificate


def exit_code(result: dict[str, Any]) -> int:
    """5 if a verification failed."""
    return 5 if result.get("valid") is False else 0


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.account.statement import spending
    from veilgraph.cli.terminal import facts, out, table

    if "valid" in result:
        promised = result["epsilon"] if result["epsilon"] is not None else "∞: nothing is promised"
        facts({"valid": result["valid"], "epsilon": promised, "delta": result["delta"]})
        for reason in result["reasons"]:
            out.print(f"  · {reason}", markup=False)
        return
    out.print(result["statement"], markup=False)
    keys = (
        "guarantee",
        "epsilon",
        "delta",
        "attack_accuracy",
        "mu",
        "accountant",
        "epsilon_by_rdp",
        "unit",
        "per_unit",
        "mechanism",
    )
    facts({key: result[key] for key in keys if key in result}, "in numbers")
    table(("what was spent", "charge"), spending(result["events"]))
