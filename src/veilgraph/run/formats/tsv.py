"""Tab-separated text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from veilgraph.run.formats.base import Format, tables, write_rows

if TYPE_CHECKING:
    from veilgraph.run.run import Run


class Tsv(Format):
    """A line per name, its numbers with tabs between them."""

    name = "tsv"
    counts = "tsv"

    def write(self, run: Run, folder: Path) -> None:
        for kind, names, rows in tables(run):
            write_rows(folder / f"{kind}.tsv", names, rows, "\t")
