"""Tables that are compressed where nothing says so, Parquet files that become far more than they are, and what reads them."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from veilgraph.disk import digest, sealed
from veilgraph.errors import InputError
from veilgraph.layout import MANIFEST
from veilgraph.limits import content
from veilgraph.load import load, save
from veilgraph.load.descriptions import read_descriptions
from veilgraph.load.readers.tables import build_database

MUCH = b"1,1,1\n" * 4_000_000


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 9),
    **{f"zlib-{level}": lambda data, level=level: zlib.compress(data, level) for level in (0, 3, 6, 9)},  # type: ignore[misc]
    "zstd": zstd,
}


@pytest.mark.parametrize("kind", PACKERS)
def test_only_a_name_says_that_a_table_is_compressed(kind: str, tmp_path: Path) -> None:
    """Whatever Polars would unpack by itself is refused, under a plain name and inside of what was unpacked."""
    packed = PACKERS[kind](b"user,item\n1,1\n")
    (tmp_path / "a.csv").write_bytes(packed)
    assert pl.read_csv(tmp_path / "a.csv").shape == (1, 2)
    with pytest.raises(InputError, match="is compressed"):
        content(tmp_path / "a.csv")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(packed))
    with pytest.raises(InputError, match="once more"):
        content(tmp_path / "a.csv.gz")


def test_no_reader_of_tables_unpacks_without_a_limit(tmp_path: Path) -> None:
    bomb = gzip.compress(b"user,item,timestamp\n" + MUCH, 9)
    (tmp_path / "tables").mkdir()
    for name in ("a.csv", "ratings.tsv", "tables/patient.csv"):
        (tmp_path / name).write_bytes(bomb)
    for name in ("a.csv.gz", "x.tsv.gz"):
        (tmp_path / name).write_bytes(gzip.compress(bomb, 9))
    for read in (
        lambda: load(f"interactions:{tmp_path / 'a.csv'}"),
        lambda: load(f"interactions:{tmp_path / 'a.csv.gz'}"),
        lambda: load(tmp_path / "x.tsv.gz"),
        lambda: load(tmp_path / "a.csv"),
        lambda: load(f"movielens:{tmp_path}"),
        lambda: read_descriptions(tmp_path / "ratings.tsv"),
        lambda: build_database(tmp_path / "tables", tmp_path / "t.sqlite"),
    ):
        with pytest.raises(InputError, match=r"is compressed|UTF-8"):
            read()


def test_a_stored_block_of_zlib_that_reads_as_text_is_no_text(tmp_path: Path) -> None:
    """Its first line is three fields; behind it is as much as somebody likes."""
    text = (b"a\tb\tc\n" * 5000)[:32768]
    packed = zlib.compressobj(0, zlib.DEFLATED, 15)
    (tmp_path / "a.tsv").write_bytes(packed.compress(text) + packed.flush())
    with pytest.raises(InputError, match=r"is compressed|UTF-8"):
        load(tmp_path / "a.tsv")


def test_ordinary_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\tr\ty\n")
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b"x\tr\ty\n"))
    assert load(tmp_path / "a.tsv").fingerprint == load(tmp_path / "b.tsv.gz").fingerprint


# --- Parquet --------------------------------------------------------------------------------------------------------------
def three(first: object, **options: Any) -> bytes:
    """A Parquet file whose heads are these, 2048 of them; tables of constants beside."""
    out = io.BytesIO()
    column = pa.chunked_array([first] * 128)
    small = [pa.chunked_array([pa.array([word] * 16)] * 128) for word in "rt"]
    table = pa.table([column, *small], names=["head", "relation", "tail"])
    pq.write_table(table, out, compression="zstd", write_statistics=False, row_group_size=2048, **options)
    return out.getvalue()


def lying() -> bytes:
    """The footer says of every size that it is none."""
    found = bytearray(three(pa.array([b"x" * 1_000_000] * 16, pa.binary(1_000_000)), use_dictionary=True))
    length = int.from_bytes(found[-8:-4], "little")
    group = pq.ParquetFile(io.BytesIO(found)).metadata.row_group(0)
    for said in {group.total_byte_size, *(group.column(i).total_uncompressed_size for i in range(3))}:
        old, number = b"", said << 1
        while True:
            old += bytes([number & 127 | (128 if number >> 7 else 0)])
            number >>= 7
            if not number:
                break
        if len(old) > 2:
            place = found.find(old, len(found) - 8 - length)
            while place >= 0:
                found[place : place + len(old)] = b"\x80" * (len(old) - 1) + b"\x00"
                place = found.find(old, place + 1)
    return bytes(found)


def numbers() -> bytes:
    out, column = io.BytesIO(), pa.chunked_array([pa.array(np.zeros(1_000_000, np.int32))] * 60)
    table = pa.table({"head": column, "relation": column, "tail": column})
    pq.write_table(table, out, compression="zstd", row_group_size=60_000_000)
    return out.getvalue()


def delta() -> bytes:
    plain = dict.fromkeys(("head", "relation", "tail"), "DELTA_BYTE_ARRAY")
    return three(pa.array(["x" * 500_000] * 16), use_dictionary=False, column_encoding=plain)


def one_page() -> bytes:
    return three(pa.array(["x" * 60_000] * 16), use_dictionary=False, data_page_size=1 << 30)


BOMBS: dict[str, Callable[[], bytes]] = {
    "lying": lying,
    "numbers": numbers,
    "delta": delta,
    "one page": one_page,
}
MEASURED = """
import resource, sys
import pyarrow.parquet
from pathlib import Path
from veilgraph.errors import InputError
from veilgraph.parquet import require_modest
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    require_modest(Path(sys.argv[1]))
except InputError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_parquet_bomb_is_known_by_its_pages(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(BOMBS[name]())
    words = [sys.executable, "-c", MEASURED, str(tmp_path / "a.parquet")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert "becomes too much" in done.stdout, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) < 300_000, done.stdout  # kB


def test_columns_are_flat_and_those_that_are_asked_for(tmp_path: Path) -> None:
    nested = pa.array([[7] * 3] * 16, pa.list_(pa.int64()))
    (tmp_path / "a.parquet").write_bytes(three(nested))
    with pytest.raises(InputError, match="words and numbers"):
        load(tmp_path / "a.parquet")
    table = pa.table(
        {"head": ["a"], "relation": ["r"], "tail": ["b"], "more": [[{"x": 1}]], "long": ["x" * 9_000_000]}
    )
    pq.write_table(table, tmp_path / "b.parquet", compression="zstd")
    assert len(load(tmp_path / "b.parquet")) == 1


def test_ordinary_parquet_is_read_whoever_wrote_it(tmp_path: Path) -> None:
    rows = {
        "head": [f"patient/{i % 97}" for i in range(5000)],
        "relation": ["has"] * 5000,
        "tail": [f"d{i % 7}" for i in range(5000)],
    }
    table = pa.table(rows)
    found = set()
    ways: list[dict[str, Any]] = [
        {}, {"compression": "none", "use_dictionary": False}, {"compression": "gzip"}, {"compression": "brotli"}, {"compression": "lz4"},
        {"data_page_version": "2.0", "data_page_size": 64}, {"row_group_size": 100}, {"dictionary_pagesize_limit": 100},
        {"use_dictionary": False, "column_encoding": dict.fromkeys(rows, "DELTA_BYTE_ARRAY")},
        {"use_dictionary": False, "column_encoding": dict.fromkeys(rows, "DELTA_LENGTH_BYTE_ARRAY")},
    ]  # fmt: skip
    for number, options in enumerate(ways):
        pq.write_table(table, tmp_path / f"{number}.parquet", **options)
        found.add(load(tmp_path / f"{number}.parquet").fingerprint)
    pl.DataFrame(rows).write_parquet(tmp_path / "polars.parquet")
    pq.write_table(
        pa.table({k: pa.array(v).dictionary_encode() for k, v in rows.items()}), tmp_path / "codes.parquet"
    )
    found |= {load(tmp_path / f"{name}.parquet").fingerprint for name in ("polars", "codes")}
    assert len(found) == 1
    pq.write_table(
        pa.table({"head": [1, 2], "relation": [True, False], "tail": [1.5, 2.5]}),
        tmp_path / "numbers.parquet",
    )
    assert len(load(tmp_path / "numbers.parquet")) == 2


def test_saved_graphs_have_the_rows_that_were_written(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\tr\ty\n")
    folder = save(load(tmp_path / "a.tsv"), tmp_path / "g")
    (folder / "train.parquet").write_bytes(numbers())
    manifest = yaml.safe_load((folder / MANIFEST).read_text())
    manifest["hashes"]["train.parquet"] = digest(folder / "train.parquet")
    for rows, said in ((1, "rows where 1 were written"), (60_000_000, "becomes too much")):
        manifest["splits"]["train"] = rows
        (folder / MANIFEST).write_text(sealed(yaml.safe_dump(manifest, sort_keys=False)))
        with pytest.raises(InputError, match=said):
            load(folder)


def test_a_table_without_rows_is_read(tmp_path: Path) -> None:
    """An empty split is a file without pages."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from veilgraph.files import read_parquet

    pq.write_table(pa.table({"head": pa.array([], pa.int32())}), tmp_path / "empty.parquet")
    assert len(read_parquet(tmp_path / "empty.parquet", ["head"], rows=0)) == 0
