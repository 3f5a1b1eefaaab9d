"""Parquet files with three columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from veilgraph.errors import ReadError
from veilgraph.load.frames import broken, first_line, pl
from veilgraph.load.readers.base import COLUMNS, Names, Parts, Reader, ReadOptions, regular_file
from veilgraph.parquet import require_modest


class ParquetReader(Reader):
    """The columns head, relation, tail, or the first three, or the three that are asked for."""

    name = "parquet"
    turn = 2
    endings = (".parquet", ".pq")
    example = "triples.parquet"

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        return Parts({"train": read_frame(source, options, names)})


def read_frame(source: str, options: ReadOptions, names: Names) -> pl.DataFrame:
    """The statements of one file."""
    path = regular_file(source)
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        raise ReadError(source, f"is not a readable Parquet file: {first_line(error)}") from None
    found = list(schema.names)
    _refuse_saved(source, Path(path), [schema.field(name).type for name in COLUMNS if found.count(name) == 1])
    chosen = _chosen(source, options.columns, found)
    require_modest(path, set(chosen))
    try:
        scan = pl.scan_parquet(path, glob=False)
        frame = scan.select(
            pl.col(old).cast(pl.String).cast(names.schema[new]).alias(new)
            for old, new in zip(chosen, COLUMNS)
        ).collect(engine="streaming")
    except broken() as error:
        raise ReadError(source, f"is not a readable Parquet file: {first_line(error)}") from None
    if not len(frame):
        raise ReadError(source, "holds no statement; expected one per row.")
    holes = frame.with_row_index("row").filter(
        pl.any_horizontal(pl.col(COLUMNS).is_null() | (pl.col(COLUMNS).cast(pl.String) == ""))
    )
    if len(holes):
        raise ReadError(source, f"row {holes['row'][0]} has an empty head, relation or tail.")
    return frame


def _refuse_saved(source: str, path: Path, kinds: list[pa.DataType]) -> None:
    """Statements of a saved graph are numbers: without the folder around them names and marks would be lost."""
    beside = all((path.parent / f"{name}.parquet").is_file() for name in ("entities", "relations"))
    if beside and kinds and all(pa.types.is_integer(kind) for kind in kinds):
        whole = (path.parent / "graph.yaml").is_file()
        remedy = (
            f"Name the folder: {path.parent}"
            if whole
            else "Its graph.yaml is missing: load the source again with veil load"
        )
        raise ReadError(source, f"is part of a saved graph: its names and marks would be lost. {remedy}.")


def _chosen(source: str, columns: tuple[str, str, str] | None, found: list[str]) -> list[str]:
    if columns is None:
        if set(COLUMNS) <= set(found):
            return list(COLUMNS)
        if len(found) != 3:
            raise ReadError(
                source,
                f"expected the columns head, relation, tail; found {', '.join(found)}. Say which with --columns.",
            )
        return found
    picked = [found[int(c)] if c.isdecimal() and int(c) < len(found) else c for c in columns]
    absent = [c for c in picked if c not in found]
    if absent:
        raise ReadError(source, f"no column is called {absent[0]!r}; there are {', '.join(found)}")
    return picked
