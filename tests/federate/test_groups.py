"""Clients that know some of the same entities, and their labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import random_graph
from veilgraph.cli import main
from veilgraph.errors import InputError, UnknownNameError, UsageError
from veilgraph.federate.groups import overlapping
from veilgraph.load import Graph, load, save
from veilgraph.load.labels import Labels, read_labels, write_labels
from veilgraph.mark import mark

FOLDS = np.array(["train"] * 12 + ["test"] * 8)


def _labels(fold: np.ndarray | None = FOLDS) -> Labels:
    return Labels(np.arange(20), np.arange(20) % 2, ["a", "b"], fold)


def _named(graph: Graph) -> set[tuple[str, str, str]]:
    rows = graph.train.tolist()
    return {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in rows}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return random_graph(200, 5, 3000)


def test_labels_to_learn_from_are_dealt_and_those_to_tell_are_everywhere(graph: Graph) -> None:
    parts = overlapping(graph, _labels(), 3)
    learnt = [{entity for entity, _, fold in words if fold == "train"} for _, words in parts.values()]
    assert [len(one) for one in learnt] == [4, 4, 4]
    assert set.union(*learnt) == {graph.entities[i] for i in range(12)}
    for part, words in parts.values():
        told = {entity for entity, _, fold in words if fold == "test"}
        assert told == {graph.entities[i] for i in range(12, 20)}
        assert told <= set(part.entities.names(np.arange(len(part.entities))))


def test_a_client_knows_all_that_is_said_between_those_it_holds(graph: Graph) -> None:
    parts = overlapping(graph, _labels(), 3, seed=4)
    sizes = set()
    for part, words in parts.values():
        held = set(part.entities.names(np.arange(len(part.entities))))
        sizes.add(len(held))
        assert _named(part) == {one for one in _named(graph) if one[0] in held and one[2] in held}
        strangers = {graph.entities[i] for i in range(12)} - {entity for entity, _, fold in words}
        assert not strangers & held  # whose labels others learn from
    assert len(sizes) == 3
    first, second = (set(parts[name][0].entities.names(np.arange(20))) for name in ("client0", "client1"))
    assert first & second


def test_a_seed_divides_the_same_way_twice(graph: Graph) -> None:
    one, again, other = (overlapping(graph, _labels(), 3, seed=seed) for seed in (1, 1, 2))
    assert [_named(part) for part, _ in one.values()] == [_named(part) for part, _ in again.values()]
    assert [_named(part) for part, _ in one.values()] != [_named(part) for part, _ in other.values()]


def test_without_folds_a_tenth_is_learnt_from(graph: Graph) -> None:
    labels = Labels(np.arange(200), np.arange(200) % 2, ["a", "b"])
    parts = overlapping(graph, labels, 2)
    learnt = sum(fold == "train" for _, words in parts.values() for *_, fold in words)
    assert 8 <= learnt <= 40
    assert {sum(fold == "test" for *_, fold in words) for _, words in parts.values()} == {200 - learnt}


def test_groups_may_be_types(tmp_path: Path) -> None:
    """Of eight types the six commonest are a group each; a client misses one group wholly."""
    lines = [(f"e{i}", "is", f"type{i % 8 if i % 8 < 6 or i < 80 else 0}") for i in range(800)]
    lines += [(f"e{i}", "near", f"e{(i * 7 + 1) % 800}") for i in range(800)]
    (tmp_path / "all.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))
    graph = load(tmp_path / "all.tsv")
    labels = Labels(
        np.array([graph.entities.id(f"e{i}") for i in range(20)]), np.arange(20) % 2, ["a", "b"], FOLDS
    )
    for part, _ in overlapping(graph, labels, 2, types="is", seed=3).values():
        names = set(part.entities.names(np.arange(len(part.entities))))
        counts = [sum(f"e{i}" in names for i in range(100, 800) if i % 8 == kind) for kind in range(1, 6)]
        assert len(set(counts)) > 2  # each group by its own draw
    with pytest.raises(UnknownNameError):
        overlapping(graph, labels, 2, types="isA")


def test_what_cannot_be_divided_is_refused(graph: Graph) -> None:
    with pytest.raises(InputError, match="fewer clients"):
        overlapping(graph, _labels(), 13)
    with pytest.raises(UsageError, match="mark the clients"):
        overlapping(graph.with_marks(mark(graph, everything=True)), _labels(), 2)


@pytest.mark.parametrize("fold", [None, FOLDS])
def test_labels_are_read_as_they_were_written(graph: Graph, fold: np.ndarray | None, tmp_path: Path) -> None:
    save(graph, tmp_path / "graph")
    write_labels(graph, _labels(fold).words(graph), tmp_path / "graph")
    whole = load(tmp_path / "graph")
    found = read_labels(whole)
    assert sorted(found.words(whole)) == sorted(_labels(fold).words(graph))


def test_the_command_gives_every_client_its_labels(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(graph, tmp_path / "graph")
    write_labels(graph, _labels(None).words(graph), tmp_path)
    table, words = (
        str(tmp_path / "labels.tsv"),
        ["federate", "split", str(tmp_path / "graph"), "--clients", "2"],
    )
    for by in ("groups", "entity"):
        out = tmp_path / by
        assert main([*words, "--labels", table, "--by", by, "--out", str(out), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert [one["name"] for one in told["clients"]] == ["client0", "client1"]
        for one in told["clients"]:
            assert len(read_labels(load(out / one["name"])).entity)
    network = "--model distmult --dimension 8 --encoder kegcn --encoder-bases 2 --rounds 1 --local-epochs 1"
    run = ["federate", "run", str(tmp_path / "groups"), "--out", str(tmp_path / "joint"), "--task", "labels"]
    assert main([*run, "--strategy", "fedkegcn", *network.split()]) == 0
    said = capsys.readouterr().out
    assert "accuracy, mean of clients" in said
    assert "MRR" not in said
    assert main([*words, "--by", "groups", "--out", str(tmp_path / "none")]) == 3  # no labels
    assert "--labels" in capsys.readouterr().err
    assert main([*words, "--types", "r0", "--out", str(tmp_path / "none")]) == 2
    assert "--by groups" in capsys.readouterr().err
