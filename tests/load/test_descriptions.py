"""Texts about entities, the published inductive split, and graphs whose test entities are others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import random_graph
from veilgraph.cli import main
from veilgraph.errors import InputError, ReadError
from veilgraph.load import Graph, load, save, split
from veilgraph.load import inductive as rule
from veilgraph.mark import mark

TTL = """@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<urn:a> <urn:likes> <urn:b> ; rdfs:comment "ein Ding"@de, "a thing"@en-GB, "res" .
<urn:b> rdfs:comment "seul"@fr .
"""


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "a thing"), ("de", "ein Ding"), ("it", "res")],
)
def test_rdf_descriptions_by_language(language: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text(TTL, encoding="utf-8")
    graph = load(tmp_path / "g.ttl", language=language)
    assert graph.descriptions.to_pylist() == [said, "seul"], "a foreign text is better than none"


def test_descriptions_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "g.tsv").write_text("a\tlikes\tb\n", encoding="utf-8")
    (tmp_path / "t.tsv").write_text('b\ta "thing"\textra\nc\tnobody\na\n', encoding="utf-8")
    graph = load(tmp_path / "g.tsv", descriptions=str(tmp_path / "t.tsv"))
    assert graph.descriptions.to_pylist() == [None, 'a "thing"']
    save(graph, tmp_path / "saved")
    assert load(tmp_path / "saved").descriptions.to_pylist() == [None, 'a "thing"']
    (tmp_path / "other.tsv").write_text("x\ttext\n", encoding="utf-8")
    with pytest.raises(InputError, match="none of its 1 names"):
        load(tmp_path / "g.tsv", descriptions=str(tmp_path / "other.tsv"))
    with pytest.raises(ReadError, match="no such file"):
        load(tmp_path / "g.tsv", descriptions=str(tmp_path / "absent.tsv"))
    assert main(["load", str(tmp_path / "g.tsv"), "--descriptions", str(tmp_path / "absent.tsv")]) == 3


def leave_one_by_one(graph: Graph, order: np.ndarray, wanted: int, first: int, least: int) -> np.ndarray:
    """The published rule with sets."""
    left = {tuple(map(int, row)) for row in graph.triples}
    held = np.zeros(len(graph.entities), np.int8)
    for e in order:
        if (held > 0).sum() == wanted:
            break
        near: dict[int, set[int]] = {}
        for h, _, t in left:
            near.setdefault(h, set()).add(t)
            near.setdefault(t, set()).add(h)
        own = {s for s in left if e in (s[0], s[2])}
        after = np.bincount([r for _, r, _ in left - own], minlength=len(graph.relations))
        touched = {r for _, r, _ in own}
        if any(len(near[m]) <= 2 for m in near.get(int(e), ())) or any(after[r] < least for r in touched):
            continue
        left -= own
        held[e] = 2 if (held > 0).sum() < first else 1
    return held


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("least", [0, 10, 25])
def test_entities_leave_by_the_published_rule(seed: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "LEAST", least)
    graph = random_graph(30, 3, 120, seed)
    order = np.random.default_rng(seed).permutation(30)
    statements = np.unique(graph.triples, axis=0)
    found = rule.held_out(statements, 30, 3, order, 4, 4)
    np.testing.assert_array_equal(found, leave_one_by_one(graph, order, 8, 4, least))


def test_inductive_split_keeps_test_entities_from_everybody() -> None:
    graph = split(load("builtin:hospital", patients=300), valid=0.05, test=0.05, mode="inductive")
    ends = {name: set(array[:, [0, 2]].ravel().tolist()) for name, array in graph.splits.items()}
    new = set(np.flatnonzero(graph.held_out).tolist())
    assert len(new) == 2 * int(0.05 * len(graph.entities))
    assert not ends["train"] & new
    tested = new - ends["valid"]
    assert all(({h, t} & new) for h, _, t in graph.split("valid").tolist())
    assert len(tested) >= len(new) // 2, "no statement of the validation split speaks of a test entity"
    assert (np.bincount(graph.train[:, 1])[np.unique(graph.split("test")[:, 1])] >= 100).all()


def test_who_is_held_out_tells_nothing_confidential() -> None:
    """Other confidential statements, same unrestricted ones: the same entities leave."""
    graph = load("builtin:hospital", patients=300)
    marked = graph.with_marks(mark(graph, relations=["hasDiagnosis", "takes"]))
    fewer = marked.with_splits(
        {"train": graph.train[~(marked.secret("train") & (np.arange(len(graph.train)) % 2 == 0))]}
    )
    held = [split(g, valid=0.02, test=0.02, mode="inductive").held_out for g in (marked, fewer)]
    np.testing.assert_array_equal(*held)


def test_too_many_are_refused() -> None:
    with pytest.raises(InputError, match="--split entities"):
        split(random_graph(), valid=0.2, test=0.2, mode="inductive")


def test_fb15k_gives_the_published_numbers(data: Path) -> None:
    graph = split(load(data / "fb15k-237"), mode="inductive")
    known = set(graph.train[:, [0, 2]].ravel().tolist())
    assert len(known) == 11_633
    assert int(graph.held_out.sum()) == 2 * 1_454


def test_grail_folders(tmp_path: Path) -> None:
    for part, lines in (("transductive", "a\tr\tb\n"), ("inductive", "x\tr\ty\n")):
        (tmp_path / part).mkdir()
        for name in ("train", "valid", "test"):
            (tmp_path / part / f"{name}.tsv").write_text(lines, encoding="utf-8")
    graph = load(tmp_path)
    assert {name: len(array) for name, array in graph.splits.items()} == {
        "train": 1, "valid": 1, "test": 1, "known": 2,
    }  # fmt: skip
    assert [graph.entities[i] for i in np.flatnonzero(graph.held_out)] == ["x", "y"]
