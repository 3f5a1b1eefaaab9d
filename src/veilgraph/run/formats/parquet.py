"""Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from veilgraph.files import write_table
from veilgraph.run.formats.base import PUBLISHED, Format, tables

if TYPE_CHECKING:
    from veilgraph.run.run import Run


class Parquet(Format):
    """A table of names and vectors for entities, and one for relations."""

    name = "parquet"
    counts = "parquet"

    def write(self, run: Run, folder: Path) -> None:
        for kind, names, rows in tables(run):
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
            write_table(
                folder / f"{kind}.parquet", pa.table({"name": names.array, "vector": vectors}), mode=PUBLISHED
            )
