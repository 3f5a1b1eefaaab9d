"""NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veilgraph.run.formats.base import Format, one_line, tables

if TYPE_CHECKING:
    from veilgraph.run.run import Run


class Npy(Format):
    """NumPy arrays, their names beside them in a text file."""

    name = "npy"
    counts = "npy"

    def write(self, run: Run, folder: Path) -> None:
        for kind, names, rows in tables(run):
            np.save(folder / f"{kind}.npy", rows, allow_pickle=False)
            text = "".join(one_line(name) + "\n" for name in names)
            (folder / f"{kind}.txt").write_text(text, encoding="utf-8")
