"""TSV and CSV, plain or gzipped: three columns, or the three that are asked for."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from veilgraph.errors import ReadError
from veilgraph.limits import content, opened
from veilgraph.load.frames import broken, pl
from veilgraph.load.readers.base import COLUMNS, Names, Parts, Reader, ReadOptions, distinct, regular_file

HEADERS = {
    ("head", "relation", "tail"),
    ("subject", "predicate", "object"),
    ("h", "r", "t"),
    ("source", "relation", "target"),
}
LONGEST_LINE = 1 << 20  # bytes; a longer line is no statement


class DelimitedReader(Reader):
    """One statement per line, fields separated by tabs (.tsv, .txt) or commas (.csv)."""

    name = "delimited"
    turn = 2
    endings = (".tsv", ".txt", ".csv", ".del", ".tab")
    example = "triples.tsv.gz"

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        return Parts({"train": read_frame(source, options, names)})


def read_frame(source: str, options: ReadOptions, names: Names) -> pl.DataFrame:
    """The statements of one file. The fast path parses; only if it stumbles does a slow one look for the line."""
    path = regular_file(source)
    separator = options.separator or ("," if ".csv" in path.name.lower() else "\t")
    by_name = options.columns is not None and not all(c.isdecimal() for c in options.columns)
    header = by_name if options.header is None else options.header
    first = next(_lines(path), (1, b""))[1]
    fields = _fields(path, first, separator)
    wanted = _positions(path, options.columns, fields, by_name)
    if options.header is None and tuple(f.strip().lower() for f in fields) in HEADERS:
        raise ReadError(
            path,
            f"looks like a header ({', '.join(fields)}). Add --header to skip it, or --no-header to keep it.",
            line=1,
        )
    placed = {wanted[i]: column for i, column in enumerate(COLUMNS)}
    # A distinct dtype for every wanted column, plain text for the rest.
    schema = {
        placed.get(i, f"unused {i}"): names.schema[placed[i]] if i in placed else pl.String()
        for i in range(len(fields))
    }
    try:
        frame = (
            pl.scan_csv(
                content(path),
                separator=separator,
                has_header=False,
                skip_rows=int(header),
                quote_char='"' if separator != "\t" else None,
                schema=schema,
                glob=False,
            )
            .select(COLUMNS)
            .collect(engine="streaming")
        )
    except broken():
        _raise_fault(path, separator, len(fields), wanted, header)
    missing = pl.any_horizontal(pl.all().is_null())
    if frame.select(missing.any()).item():
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines
        if frame.select(missing.any()).item():
            _raise_fault(path, separator, len(fields), wanted, header)
    if not len(frame):
        raise ReadError(source, "holds no statement; expected one per line.")
    sizes = [_sizes(frame[column]) for column in COLUMNS]
    if max(high for _, high in sizes) > LONGEST_LINE or min(low for low, _ in sizes) == 0:
        _raise_fault(path, separator, len(fields), wanted, header)
    return frame


def _sizes(column: pl.Series) -> tuple[int, int]:
    """Bytes of the shortest and the longest name."""
    sizes = distinct(column).cast(pl.String).str.len_bytes()
    return int(sizes.min() or 0), int(sizes.max() or 0)  # type: ignore[arg-type]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines; a line over the limit, or broken compression, is an error here."""
    number = 0
    try:
        with opened(path) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise ReadError(
                        path,
                        f"longer than {LONGEST_LINE:,} bytes: this is no list of statements.",
                        line=number,
                    )
                yield number, line.rstrip(b"\r\n")
    except (OSError, EOFError, zlib.error) as error:
        raise ReadError(path, f"cannot be read after line {number}: {error}") from None


def _fields(path: Path, line: bytes, separator: str, number: int = 1) -> list[str]:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        wide = number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff")
        raise ReadError(
            path,
            f"byte {error.start + 1} is not UTF-8 ({line[error.start : error.start + 4]!r}). "
            f"Convert the file, e.g. with: iconv -f {'utf-16' if wide else 'latin1'} -t utf-8",
            line=number,
        ) from None
    if separator != "\t":
        try:
            return next(csv.reader([text], delimiter=separator), [])
        except csv.Error as error:
            raise ReadError(path, f"is not valid CSV: {error}", line=number) from None
    return text.split(separator)


def _positions(
    path: Path, columns: tuple[str, str, str] | None, fields: list[str], by_name: bool
) -> tuple[int, int, int]:
    """Which columns hold head, relation and tail."""
    if columns is None:
        if len(fields) != 3:
            found = f"found {len(fields)}: {' | '.join(fields)[:80]!r}"
            raise ReadError(
                path,
                f"expected 3 columns (head, relation, tail), {found}. "
                "Say which with --columns (e.g. 0,1,2), or which separator with --separator.",
                line=1,
            )
        return (0, 1, 2)
    if by_name:
        absent = [c for c in columns if c not in fields]
        if absent:
            raise ReadError(
                path, f"no column is called {absent[0]!r}; the header has {', '.join(fields)}", line=1
            )
        chosen = [fields.index(c) for c in columns]
    else:
        chosen = [int(c) for c in columns]
        if max(chosen) >= len(fields):
            raise ReadError(
                path, f"column {max(chosen)} was asked for, but there are only {len(fields)}", line=1
            )
    if len(set(chosen)) != 3:
        raise ReadError(path, f"--columns must name three different columns, found {','.join(columns)}")
    return (chosen[0], chosen[1], chosen[2])


def _raise_fault(
    path: Path, separator: str, width: int, wanted: tuple[int, int, int], header: bool
) -> NoReturn:
    """Find the first line the fast parser could not accept and say what is wrong with it."""
    for number, line in _lines(path):
        if (header and number == 1) or (not line and number > 1):
            continue
        fields = _fields(path, line, separator, number)
        if len(fields) != width:
            raise ReadError(
                path,
                f"expected {width} columns, found {len(fields)}: {line[:80].decode('utf-8')!r}",
                line=number,
            )
        empty = [COLUMNS[i] for i, position in enumerate(wanted) if not fields[position]]
        if empty:
            raise ReadError(path, f"the {empty[0]} is empty: {line[:80].decode('utf-8')!r}", line=number)
    raise ReadError(path, "cannot be parsed: some field is empty or broken in a way that cannot be located.")
