"""veil report RUN [RUN …] --out report.html"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="finished run folders on one graph")
    parser.add_argument("--out", help="the file to write (default: report.html in the first run)")
    parser.add_argument("--force", action="store_true", help="replace the file of --out, if it is there")
    parser.add_argument("--format", choices=("html", "md"), default="html", help="one page, or text")
    parser.add_argument("--graph", help="the graph, if it has moved")
    parser.add_argument("--canaries", type=int, default=0, help="also audit with so many (trains once more)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Write."""
    from veilgraph.cli.terminal import note
    from veilgraph.errors import ConfigError
    from veilgraph.files import check_new
    from veilgraph.report.runs import report

    check_new(options.out, force=options.force)
    if options.canaries < 0:
        raise ConfigError(
            f"--canaries is how many to audit with, or 0 for no audit; found {options.canaries}."
        )
    path = report(
        options.runs,
        out=options.out,
        force=options.force,
        graph=options.graph,
        canaries=options.canaries,
        format=options.format,
        note=note,
    )
    return {"report": str(path), "runs": options.runs, "format": options.format}


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts

    facts({"report": result["report"], "runs": ", ".join(result["runs"])})
