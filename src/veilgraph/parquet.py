"""How much a Parquet file becomes, before anything is unpacked: by its pages, because the footer is the sender's word.

A reader takes as much memory for a page as the page's own header says, and its values are as many as that says; so both are read
here, page by page, without unpacking one. What repeats words (dictionaries, values that share beginnings) is bounded by its longest
word; only where the bound is too large are values counted, in batches that the longest word keeps small.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilgraph.errors import ReadError
from veilgraph.limits import beyond, limit

AT_ONCE = 1 << 26  # bytes that a batch may become
LARGEST_PAGE = 1 << 28
EMPTY = 64  # bytes: of the column of a table without rows
LOOKED_AT = 1 << 25  # bytes of a column's dictionaries in which the longest word is looked for
PAGES = 10_000  # of a column, and one more for a hundred values
DATA, INDEX, DICTIONARY, DATA_2 = range(4)  # kinds of pages
BY_DICTIONARY, BY_BEGINNING, FIXED = (2, 8), (7,), (0, 3, 4, 5, 6, 9)  # numbers of encodings
FIXED_WIDTH = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


@dataclass
class _Column:
    """What the pages of one column come to."""

    size: int = 0  # bytes, unpacked
    values: int = 0
    repeated: int = 0  # values that stand for a word elsewhere
    longest: int = 0  # of such words, bytes, or more
    only_dictionaries: bool = True
    looked_at: int = 0
    pages: int = 0


def require_modest(path: Path, columns: Iterable[str] | None = None, rows: int | None = None) -> None:
    """Raise for a file whose columns become too much, are not flat, or (where it is known how many there are) have other rows than that."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            about, schema = file.metadata, file.schema_arrow
            names = list(schema.names if columns is None else columns)
            if rows is not None and about.num_rows != rows:
                raise ReadError(path, f"has {about.num_rows:,} rows where {rows:,} were written.")
            places = _places(path, about, schema, names)
        found = {name: _pages(path, about, place) for name, place in places.items()}
    except (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError, IndexError) as error:
        raise ReadError(path, f"is not a readable Parquet file: {_line(error)}") from None
    most = min(limit("decompressed"), max(1 << 26, limit("ratio") * path.stat().st_size))
    sure = sum(max(one.size, 8 * one.values) for one in found.values())
    size = sure + sum(one.repeated * one.longest for one in found.values())
    if sure <= most < size:
        size = sure + _counted(path, {name: one for name, one in found.items() if one.repeated}, most)
    if size > most:
        said = f"{size:,} bytes of {path.stat().st_size:,}"
        raise beyond(path, "becomes too much when it is unpacked", "ratio", said)


def _line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _places(path: Path, about: Any, schema: Any, names: list[str]) -> dict[str, int]:
    """The number of each column among those of the file, all of them flat."""
    import pyarrow.types as kinds

    flat = (
        kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary, kinds.is_integer,
        kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_temporal, kinds.is_null, kinds.is_string_view, kinds.is_binary_view,
    )  # fmt: skip
    known: dict[str, list[int]] = {}
    for number in range(about.num_columns):
        known.setdefault(about.schema.column(number).path, []).append(number)
    found = {}
    for name in names:
        if schema.get_field_index(name) < 0:
            raise ReadError(path, f"has no column {name!r}, or several of that name.")
        kind = schema.field(name).type
        kind = kind.value_type if kinds.is_dictionary(kind) else kind
        is_flat = any(one(kind) for one in flat) and len(known.get(name, ())) == 1
        if not is_flat or about.schema.column(known[name][0]).max_repetition_level:
            raise ReadError(
                path, f"its column {name!r} holds {str(kind)[:60]}: words and numbers are what can be read."
            )
        found[name] = known[name][0]
    return found


def _pages(path: Path, about: Any, place: int) -> _Column:
    """What the headers of a column's pages say."""
    found, column = _Column(), about.schema.column(place)
    width = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for group in range(about.num_row_groups):
            chunk = about.row_group(group).column(place)
            _chunk(data, chunk, found, FIXED_WIDTH.get(column.physical_type, width))
    return found


def _chunk(data: mmap.mmap, chunk: Any, found: _Column, width: int | None) -> None:
    if not chunk.num_values and chunk.total_compressed_size <= EMPTY:
        return  # (a table without rows has no page, or an empty dictionary)
    first = chunk.data_page_offset
    if chunk.has_dictionary_page:
        if not 0 < chunk.dictionary_page_offset < first:
            raise ValueError("its dictionary is not where dictionaries are")
        first = chunk.dictionary_page_offset
    end, values, longest = first + chunk.total_compressed_size, 0, 0
    if chunk.file_path or not 0 < first <= end <= len(data):
        raise ValueError("its columns are elsewhere")
    while first < end and values < chunk.num_values:
        page = _Compact(data, first, end)
        header = page.struct()
        kind, unpacked, packed = (_number(header, field) for field in (1, 2, 3))
        first = page.place + packed
        found.pages += 1
        if found.pages > PAGES + (found.values + values) // 100:
            raise ValueError(
                "it has more pages than can be looked at: write it anew, in pages of the usual size"
            )
        if first > end or unpacked > LARGEST_PAGE:
            raise ValueError("a page is longer than its column, or than any page")
        found.size += unpacked
        if kind == DICTIONARY:
            found.looked_at += unpacked
            longest = unpacked
            if found.looked_at <= LOOKED_AT:
                longest = _longest(data[page.place : first], chunk.compression, unpacked)
        elif kind in (DATA, DATA_2):
            inner = header.get(5 if kind == DATA else 8)
            if not isinstance(inner, dict):
                raise ValueError("a page does not say what it is")
            here, encoding = _number(inner, 1), _number(inner, 2 if kind == DATA else 4)
            values += here
            _add(found, here, encoding, unpacked, longest, width)
    if values != chunk.num_values:
        raise ValueError("its pages have not as many values as its footer says")
    found.values += values


def _add(found: _Column, here: int, encoding: int, unpacked: int, longest: int, width: int | None) -> None:
    """Count a page of data."""
    if width is not None:
        found.size += here * width
        return
    if encoding not in (*BY_DICTIONARY, *BY_BEGINNING, *FIXED):
        raise ValueError(f"a page is encoded in a way that is not known ({encoding})")
    if encoding in BY_DICTIONARY or encoding in BY_BEGINNING:
        found.repeated += here
        found.longest = max(found.longest, longest if encoding in BY_DICTIONARY else unpacked)
    found.only_dictionaries &= encoding in BY_DICTIONARY


def _longest(data: bytes, codec: str, unpacked: int) -> int:
    """Bytes of the longest word of a dictionary, or of all of it."""
    import pyarrow as pa

    try:
        if codec != "UNCOMPRESSED":
            data = pa.decompress(data, unpacked, codec=codec.lower(), asbytes=True)
    except (pa.ArrowException, ValueError, OSError):
        return unpacked
    place, longest = 0, 0
    while place + 4 <= len(data):
        length = int.from_bytes(data[place : place + 4], "little")
        longest = max(longest, length)
        place += 4 + length
    return min(longest, unpacked)


def _counted(path: Path, columns: Mapping[str, _Column], most: int) -> int:
    """What words come to, each as often as it is there."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    total = 0
    try:
        for name, column in columns.items():
            shared = column.only_dictionaries
            rows = 1 << 16 if shared else max(1, min(1 << 16, AT_ONCE // max(column.longest, 1)))
            with pq.ParquetFile(path, read_dictionary=[name] if shared else []) as file:
                for batch in file.iter_batches(rows, columns=[name]):
                    words = batch.column(0)
                    if pa.types.is_dictionary(words.type):
                        lengths = pc.binary_length(words.dictionary.cast(pa.large_binary()))
                        total += pc.sum(lengths.take(words.indices)).as_py() or 0
                    else:
                        total += words.nbytes
                    if total > most:
                        return total
    except (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        raise ReadError(path, f"is not a readable Parquet file: {_line(error)}") from None
    return total


# --- headers of pages: Thrift's compact protocol ---------------------------------------------------------------------------
def _number(header: Mapping[int, Any], field: int) -> int:
    value = header.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("the header of a page is damaged")
    return value


class _Compact:
    """Reads one value after the other; ValueError where there is none."""

    def __init__(self, data: mmap.mmap, place: int, end: int) -> None:
        self.data, self.place, self.end = data, place, min(end, place + (1 << 24))

    def byte(self) -> int:
        if self.place >= self.end:
            raise ValueError("the header of a page has no end")
        self.place += 1
        return self.data[self.place - 1]

    def varint(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            one = self.byte()
            found |= (one & 127) << shift
            if one < 128:
                return found
        raise ValueError("a number in the header of a page is too long")

    def skip(self, length: int) -> None:
        self.place += length
        if self.place > self.end:
            raise ValueError("the header of a page has no end")

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Its fields by their numbers."""
        found: dict[int, Any] = {}
        field = 0
        while head := self.byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self.zigzag()
            if field in found:
                raise ValueError("the header of a page says something twice")
            found[field] = self.value(kind, depth)
        return found

    def zigzag(self) -> int:
        found = self.varint()
        return (found >> 1) ^ -(found & 1)

    def value(self, kind: int, depth: int) -> Any:
        if depth > 4:
            raise ValueError("the header of a page is nested too deeply")
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (3, 7, 8):
            self.skip({3: 1, 7: 8}.get(kind) or self.varint())
            return None
        raise ValueError("the header of a page holds what no header holds")
