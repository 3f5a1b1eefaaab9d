"""Tables that are compressed where nothing says so, Parquet files that become far more than they are, and what reads them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from veilgraph.errors import InputError
from veilgraph.limits import content
from veilgraph.load import load
from veilgraph.load.descriptions import read_descriptions
from veilgraph.load.readers.tables import build_database

MUCH = b"1,1,1\n" * 4_000_000


def zstd(data: bytes) -> bytes:
    import pyarrow as pa

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
