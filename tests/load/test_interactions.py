"""Who took what: MovieLens in both of its forms, and any table of users and items."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from veilgraph.errors import ReadError
from veilgraph.load import Graph, load, split
from veilgraph.load.readers.movielens import GENRES


def named(graph: Graph) -> list[tuple[str, str, str]]:
    return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.train]


def published(folder: Path) -> None:
    (folder / "u.data").write_text("2\t1\t5\t300\n1\t2\t3\t200\n1\t1\t4\t100\n")
    (folder / "u.user").write_text("1|24|M|technician|85711\n2|46|F|other|94043\n")
    flags = [
        "|".join("1" if genre in chosen else "0" for genre in GENRES)
        for chosen in (("Comedy", "War"), ("Drama",))
    ]
    text = f"1|Toy Story (1995)|01-Jan-1995||url|{flags[0]}\n2|Misérables, Les (1995)|01-Jan-1995||url|{flags[1]}\n"
    (folder / "u.item").write_bytes(text.encode("latin-1"))


def test_movielens_as_published(tmp_path: Path) -> None:
    published(tmp_path)
    graph = load(f"movielens:{tmp_path}")
    found = named(graph)
    assert [(h, t) for h, r, t in found if r == "watched"] == [
        ("user/1", "movie/1"), ("user/1", "movie/2"), ("user/2", "movie/1"),
    ]  # fmt: skip
    assert {s for s in found if s[1] != "watched"} == {
        ("movie/1", "genre", "genre/Comedy"), ("movie/1", "genre", "genre/War"), ("movie/2", "genre", "genre/Drama"),
        ("user/1", "gender", "gender/M"), ("user/2", "gender", "gender/F"),
        ("user/1", "age_group", "age_group/under_35"), ("user/2", "age_group", "age_group/over_45"),
        ("user/1", "occupation", "occupation/technician"), ("user/2", "occupation", "occupation/other"),
    }  # fmt: skip
    assert graph.descriptions[graph.entities.id("movie/2")].as_py() == "Misérables, Les (1995)"


def test_movielens_for_real(data: Path) -> None:
    graph = load(f"movielens:{data / 'movielens-100k'}")
    counts = dict(zip(graph.relations, np.bincount(graph.train[:, 1])))
    assert counts == {"watched": 100_000, "genre": 2893, "gender": 943, "age_group": 943, "occupation": 943}
    groups = graph.train[graph.train[:, 1] == graph.relations.id("age_group")][:, 2]
    assert sorted(np.unique(groups, return_counts=True)[1]) == [190, 209, 544]
    parts = split(graph, valid=0.1, test=0.1, mode="latest")
    assert 9_000 < len(parts.split("test")) < 11_000
    assert set(parts.split("test")[:, 1]) == {graph.relations.id("watched")}


@pytest.mark.parametrize("wrong", ["u.data", "u.user", "u.item"])
def test_a_missing_or_broken_file_is_named(wrong: str, tmp_path: Path) -> None:
    published(tmp_path)
    (tmp_path / wrong).write_text("1|2\n")
    with pytest.raises(ReadError):
        load(f"movielens:{tmp_path}")
    (tmp_path / wrong).unlink()
    with pytest.raises(ReadError, match="grouplens"):
        load(f"movielens:{tmp_path}")


def test_any_table_of_users_and_items(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(b"UserId,ItemId,rating,Timestamp\nann,3,5,20\nbob,4,1,9\nann,4,2,100\n"))
    expected = [
        ("user/bob", "watched", "item/4"),
        ("user/ann", "watched", "item/3"),
        ("user/ann", "watched", "item/4"),
    ]
    assert named(load(f"interactions:{path}")) == expected
    other = tmp_path / "log.tsv"
    other.write_text("who\twhat\twhen\nann\t3\t2024-02-01\nbob\t4\t2023-01-01\n")
    assert named(load(f"interactions:{other}", columns=("who", "what", "when")))[0][0] == "user/bob"
    with pytest.raises(ReadError, match="--columns"):
        load(f"interactions:{other}")
    with pytest.raises(ReadError, match="no column is called"):
        load(f"interactions:{other}", columns=("who", "what", "wen"))
