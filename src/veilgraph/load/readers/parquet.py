"""Parquet files with three columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from veilgraph.errors import ReadError
from veilgraph.limits import beyond, limit
from veilgraph.load.frames import broken, first_line, pl
from veilgraph.load.readers.base import COLUMNS, Names, Parts, Reader, ReadOptions, regular_file


class ParquetReader(Reader):
    """The columns head, relation, tail, or the first three, or the three that are asked for."""

    name = "parquet"
    turn = 2
    endings = (".parquet", ".pq")
    example = "triples.parquet"

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        return Parts({"train": read_frame(source, options, names)})


BATCH = 2048  # rows looked at together
SMALL = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_temporal,
    pa.types.is_null,
)


def read_frame(source: str, options: ReadOptions, names: Names) -> pl.DataFrame:
    """The statements of one file."""
    path = regular_file(source)
    _refuse_bomb(path, source)
    try:
        scan = pl.scan_parquet(path, glob=False)
        schema = scan.collect_schema()
        found = schema.names()
        _refuse_saved(source, Path(path), [schema[name] for name in COLUMNS if name in found])
        chosen = _chosen(source, options.columns, found)
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


def _refuse_bomb(path: Path, source: str) -> None:
    """Raise for a file that says it becomes far more than it is."""
    try:
        with pq.ParquetFile(path) as file:
            about = file.metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            size = sum(max(group.total_byte_size, 16 * group.num_rows) for group in groups)
    except (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        raise ReadError(source, f"is not a readable Parquet file: {first_line(error)}") from None
    most = min(limit("decompressed"), max(1 << 26, limit("ratio") * path.stat().st_size))
    if size <= most:
        size = _unpacked(path, source, most)
    if size > most:
        raise beyond(
            source,
            "becomes too much when it is unpacked",
            "ratio",
            f"{size:,} bytes of {path.stat().st_size:,}",
        )


def _unpacked(path: Path, source: str, most: int) -> int:
    """What its words come to, each as often as it is there: a dictionary says a long one once, and rows repeat it."""
    total = 0
    try:
        with pq.ParquetFile(path) as plain:
            words = [one.name for one in plain.schema_arrow if not any(kind(one.type) for kind in SMALL)]
            repeated = _repeated(plain.metadata)
        with pq.ParquetFile(path, read_dictionary=[name for name in words if name in repeated]) as file:
            for batch in file.iter_batches(BATCH, columns=words) if words else ():
                for column in batch.columns:
                    if pa.types.is_dictionary(column.type):
                        lengths = pc.binary_length(column.dictionary.cast(pa.large_binary()))
                        total += pc.sum(lengths.take(column.indices)).as_py() or 0
                    else:
                        total += column.nbytes
                if total > most:
                    return total
    except (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        raise ReadError(source, f"is not a readable Parquet file: {first_line(error)}") from None
    return total


def _refuse_saved(source: str, path: Path, kinds: list[pl.DataType]) -> None:
    """Statements of a saved graph are numbers: without the folder around them names and marks would be lost."""
    beside = all((path.parent / f"{name}.parquet").is_file() for name in ("entities", "relations"))
    if beside and kinds and all(kind.is_integer() for kind in kinds):
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


def _repeated(about: pq.FileMetaData) -> set[str]:
    """Columns of which every part has a dictionary and nothing else."""
    found: dict[str, bool] = {}
    for group in range(about.num_row_groups):
        for number in range(about.num_columns):
            column = about.row_group(group).column(number)
            plain = any(kind.startswith("DELTA") for kind in column.encodings)
            by_dictionary = any(kind.endswith("DICTIONARY") for kind in column.encodings)
            found[column.path_in_schema] = (
                found.get(column.path_in_schema, True) and by_dictionary and not plain
            )
    return {name for name, fits in found.items() if fits}
