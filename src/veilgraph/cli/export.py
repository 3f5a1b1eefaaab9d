"""veil export RUN --format parquet --out FOLDER"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument(
        "--format", default="parquet", choices=("parquet", "npy", "word2vec", "tsv", "pykeen", "run")
    )
    parser.add_argument("--out", required=True, help="the folder to make")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Write."""
    from veilgraph.run.export import export
    from veilgraph.run.run import Run

    opened = Run.open(options.run)
    folder = export(opened, options.out, options.format)
    return {
        "run": options.run,
        "format": options.format,
        "out": str(folder),
        "files": sorted(path.name for path in folder.iterdir()),
        "counts": any(path.name.startswith("counts") for path in folder.iterdir()),
        "entities": len(opened.entities),
        "relations": len(opened.relations),
    }


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, note

    facts({**result, "files": ", ".join(result["files"])})
    if result["counts"]:
        note(
            "Noisy counts are part of this run's scores: whoever uses the vectors needs counts.* too (counts-README.txt says how)."
        )
