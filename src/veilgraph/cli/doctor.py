"""veil doctor PATH · veil doctor PATH --recover"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("path", help="a graph, a run or a classification")
    parser.add_argument(
        "--recover",
        action="store_true",
        help="mend what can be mended: remove what killed processes left, put back what they moved, move damaged extras aside",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Look, and mend if asked."""
    from veilgraph.report.health import examine, mend

    return mend(options.path) if options.recover else examine(options.path)


def exit_code(result: dict[str, Any]) -> int:
    """5 where something is not whole."""
    return 0 if result["whole"] else 5


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, out

    facts({"kind": result["kind"] or "none of ours", "whole": result["whole"]}, result["path"])
    for one in result["findings"]:
        remedy = f" → {one['remedy']}" if one["remedy"] else ""
        out.print(f"  {'✗' if one['bad'] else '·'} {one['what']}{remedy}", markup=False)
    for line in result["mended"]:
        out.print(f"  ✓ {line}", markup=False)
    if any(one["can_be_mended"] for one in result["findings"]):
        out.print(f"  veil doctor {result['path']} --recover mends what can be mended.", markup=False)
