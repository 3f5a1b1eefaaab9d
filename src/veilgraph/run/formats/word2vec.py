"""The format of word2vec, which gensim reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from veilgraph.run.formats.base import Format, tables, write_rows

if TYPE_CHECKING:
    from veilgraph.run.run import Run


class Word2vec(Format):
    """The text format of word2vec; blanks in names become underscores."""

    name = "word2vec"
    counts = "tsv"

    def write(self, run: Run, folder: Path) -> None:
        for kind, names, rows in tables(run):
            write_rows(folder / f"{kind}.txt", names, rows, " ", f"{rows.shape[0]} {rows.shape[1]}\n")
