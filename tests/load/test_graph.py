"""The graph, its folder, its checks and its splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import random_graph
from veilgraph.errors import InputError, UnknownNameError
from veilgraph.load import Graph, Vocabulary, check, fix, load, save, split


def test_is_immutable(hospital: Graph) -> None:
    assert hospital.train.dtype == np.int32
    with pytest.raises(ValueError):
        hospital.train[0, 0] = 1
    with pytest.raises(AttributeError):
        hospital.source = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        hospital.splits["train"] = 1  # type: ignore[index]


def test_save_and_load_are_inverse(tmp_path: Path, hospital: Graph) -> None:
    save(hospital, tmp_path / "g")
    again = load(tmp_path / "g")
    assert again.fingerprint == hospital.fingerprint
    assert again.entities == hospital.entities
    assert again.descriptions.equals(hospital.descriptions)
    assert again.source == str(tmp_path / "g")
    assert repr(again) == repr(hospital)


def test_vocabulary_finds_names_and_suggests() -> None:
    vocabulary = Vocabulary(["patient/1", "patient/2", "ward/a"])
    assert vocabulary.id("ward/a") == 2
    assert vocabulary.names(np.array([2, 0])) == ["ward/a", "patient/1"]
    assert vocabulary.ids(["patient/2", "patient/1"]).tolist() == [1, 0]
    assert vocabulary[0:2] == ["patient/1", "patient/2"]
    with pytest.raises(UnknownNameError, match="Nearest: patient/1"):
        vocabulary.id("patient_1")


def faulty() -> Graph:
    base = random_graph()
    train = np.concatenate([base.train, base.train[:2]])
    valid = np.concatenate([base.splits["valid"], base.train[:3]])
    relations = Vocabulary([*base.relations, "unused"], "relation")
    entities = Vocabulary([*base.entities, "zz"])
    test = np.concatenate([base.splits["test"], [[20, 0, 1]]])
    return Graph(entities, relations, {"train": train, "valid": valid, "test": test})


def test_check_finds_and_fix_mends() -> None:
    kinds = {(f.split, f.kind.split(" (")[0]): f.count for f in check(faulty())}
    assert kinds[("train", "duplicate")] == 2
    assert kinds[("valid", "leak")] == 3
    assert kinds[("test", "statement with an entity unseen in train")] == 1
    assert kinds[("train", "relation without a statement")] == 1
    mended = fix(faulty())
    assert check(mended) == []
    assert len(mended.relations) == 4


def test_loading_reports_but_does_not_mend(tmp_path: Path) -> None:
    path = tmp_path / "g.tsv"
    path.write_text("a\tr\tb\na\tr\tb\n")
    graph = load(path)
    assert len(graph) == 2
    assert [f.kind for f in check(graph)] == ["duplicate"]
    assert "a r b" in str(check(graph)[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_random_split_keeps_every_name_in_train(seed: int) -> None:
    graph = split(load("builtin:hospital", patients=100), valid=0.1, test=0.1, seed=seed)
    assert set(np.unique(graph.train[:, [0, 2]])) == set(range(len(graph.entities)))
    assert set(np.unique(graph.train[:, 1])) == set(range(len(graph.relations)))
    assert check(graph) == []
    assert (
        0.06 * len(graph) < len(graph.splits["test"]) < 0.12 * len(graph)
    )  # those kept for their names are missing
    assert split(graph, seed=seed).fingerprint == split(graph, seed=seed).fingerprint


def test_a_confidential_statement_moves_no_other() -> None:
    """Marked first, then split: without one statement, all others are where they were."""
    from veilgraph.mark import mark

    whole = load("builtin:hospital", patients=60)
    whole = whole.with_marks(mark(whole, relations=["has*", "takes"]))
    parts = split(whole, valid=0.1, test=0.1)
    places = np.flatnonzero(whole.secret("train"))[::40]
    assert len(places) > 5
    for place in places:
        less = split(whole.with_splits({"train": np.delete(whole.train, place, 0)}), valid=0.1, test=0.1)
        for name in ("train", "valid", "test"):
            gone = set(whole.keys(parts.split(name))) - set(whole.keys(less.split(name)))
            assert gone <= set(whole.keys(whole.train[[place]]))
            assert set(whole.keys(less.split(name))) <= set(whole.keys(parts.split(name)))


def test_a_split_says_nothing_about_random_marks() -> None:
    """Both come from numbers of the statements: with one seed they must still have nothing to do with each other."""
    from veilgraph.mark import mark

    graph = split(load("builtin:hospital", patients=300), valid=0.1, test=0.1, seed=0)
    marked = graph.with_marks(mark(graph, random_share=0.5, seed=0))
    assert 0.4 < marked.secret("test").mean() < 0.6


def test_the_latest_statements_of_everybody_are_held_out() -> None:
    rng = np.random.default_rng(0)
    rows = [
        (u, 1, 10 + i) for u in range(10) for i in range(20)
    ]  # every user takes twenty items, first to last
    rows = [rows[i] for i in np.argsort([r[2] * 100 + rng.random() for r in rows])]
    rows += [(u, 0, 40) for u in range(10)]
    names = [f"n{i:02d}" for i in range(41)]
    graph = Graph(
        Vocabulary(names), Vocabulary(["likes", "took"], "relation"), {"train": np.array(rows, np.int32)}
    )
    parts = split(graph, valid=0.1, test=0.2, mode="latest")
    assert set(parts.split("test")[:, 2]) == set(range(26, 30))
    assert set(parts.split("valid")[:, 2]) == {24, 25}
    assert (parts.split("train")[:, 1] == 0).sum() == 10


def test_entity_split_holds_entities_out() -> None:
    graph = split(load("builtin:hospital", patients=100), valid=0.1, test=0.1, mode="entities")
    seen = set(np.unique(graph.train[:, [0, 2]]))
    for name in ("valid", "test"):
        statements = graph.splits[name]
        assert len(statements)
        assert all(h not in seen or t not in seen for h, _, t in statements)
    assert set(np.unique(graph.train[:, 1])) == set(range(len(graph.relations)))


def test_split_refuses_nonsense() -> None:
    with pytest.raises(InputError, match="leave something"):
        split(random_graph(), valid=0.6, test=0.5)
    with pytest.raises(InputError, match="mode"):
        split(random_graph(), mode="rnd")


def test_hospital_is_structured_and_described() -> None:
    graph = load("builtin:hospital", patients=300)
    assert len(graph.relations) == 16
    described = [bool(t) for t in graph.descriptions.to_pylist()]
    people = [name.startswith(("patient/", "doctor/")) for name in graph.entities]
    assert all(d != p for d, p in zip(described, people))
    assert check(graph) == []


def test_hospital_scales_to_millions() -> None:
    graph = load("builtin:hospital", patients=80_000)
    assert len(graph) > 1_000_000


def test_real_benchmarks_have_their_published_counts(data: Path) -> None:
    graph = load(data / "fb15k-237")
    assert (len(graph.entities), len(graph.relations)) == (14541, 237)
    assert [len(graph.splits[s]) for s in ("train", "valid", "test")] == [272115, 17535, 20466]
    assert graph.descriptions is not None
