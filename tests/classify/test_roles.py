"""Entities that mean one thing as heads and another as tails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from veilgraph.classify.config import ClassifyConfig
from veilgraph.classify.guarantees import Task, guarantee
from veilgraph.classify.guarantees.base import Book, Outcome
from veilgraph.classify.guarantees.edge import SENSITIVITY, SUMS, sums_of
from veilgraph.classify.roles import VIEWS, View, best_view, viewed
from veilgraph.errors import VerificationError
from veilgraph.files import read_arrays, write_arrays
from veilgraph.load.folds import folds_of, truth_of
from veilgraph.load.labels import Labels
from veilgraph.rank.classification import measure

CLUBS, PEOPLE = 3, 300


def _people(shuffled: bool) -> Task:
    """Who is in a club speaks of those who are. As tails all have other numbers, if a source numbers them for itself."""
    rng = np.random.default_rng(0)
    head = np.repeat(np.arange(PEOPLE), 6)
    tail = rng.integers(0, PEOPLE // CLUBS, len(head)) * CLUBS + head % CLUBS
    if shuffled:
        tail = rng.permutation(PEOPLE)[tail]
    triples = np.stack([head, np.zeros_like(head), tail], 1)
    labels = Labels(np.arange(PEOPLE), np.arange(PEOPLE) % CLUBS, ["a", "b", "c"])
    folds, secret = folds_of(labels, PEOPLE, 0.4, 0), rng.random(len(head)) < 0.5
    return Task(triples, secret, PEOPLE, 1, labels, folds, truth_of(labels, PEOPLE))


def _turned(task: Task) -> Task:
    return replace(task, triples=task.triples[:, ::-1].copy())


@pytest.mark.parametrize("view", VIEWS)
def test_labels_keep_their_entities_and_statements_their_number(view: str) -> None:
    task = _people(True)
    other = viewed(task, view)
    assert np.array_equal(other.truth[: task.nodes], task.truth)
    assert not other.truth[task.nodes :].any()
    assert len(other.truth) == other.nodes > other.triples[:, [0, 2]].max()
    assert np.array_equal(other.triples[:, [0, 2]] % task.nodes, task.triples[:, [0, 2]])
    assert np.array_equal(other.triples[:, 1], task.triples[:, 1])
    if view != "one":
        assert not set(other.triples[:, 0]) & set(other.triples[:, 2])  # nobody is both


def test_the_view_is_what_the_source_means() -> None:
    assert best_view(_people(False), 0).name == "one"
    assert best_view(_people(True), 0).name == "heads"
    assert best_view(_turned(_people(True)), 0).name == "tails"


def test_the_view_does_not_read_confidential_statements() -> None:
    task = _people(True)
    less = replace(task, triples=task.unrestricted, secret=np.zeros((~task.secret).sum(), bool))
    for name in VIEWS:
        whole, without = View.of(task, name, 0), View.of(less, name, 0)
        assert whole.right == without.right
        assert np.array_equal(whole.told, without.told)


@pytest.mark.parametrize("way", SENSITIVITY)
@pytest.mark.parametrize("view", VIEWS)
def test_a_statement_moves_sums_no_further_in_any_view(view: str, way: str) -> None:
    task, rng = viewed(_people(True), view), np.random.default_rng(1)
    sent = rng.normal(size=(task.nodes, 3)) * 5
    whole = sums_of(sent, task.confidential, task.nodes, way)
    for gone in range(0, len(task.confidential), 50):
        less = sums_of(sent, np.delete(task.confidential, gone, 0), task.nodes, way)
        assert np.linalg.norm(whole - less) <= SENSITIVITY[way] + 1e-12


def _learnt(task: Task, folder: Path) -> Outcome:
    folder.mkdir(exist_ok=True)
    config = ClassifyConfig(guarantee="edge", epsilon=8.0)
    return guarantee("edge").learn(task, config, Book.open(folder, config))


def test_renumbered_tails_are_no_hindrance(tmp_path: Path) -> None:
    found = {}
    for shuffled in (False, True):
        task = _people(shuffled)
        scores = _learnt(task, tmp_path / str(shuffled)).scores
        assert scores.shape == task.truth.shape  # entities of a view are nobody's business
        found[shuffled] = measure(scores[task.folds.test], task.truth[task.folds.test])["accuracy"]
    assert found[True] > 0.8
    assert found[True] > found[False] - 0.1


def test_sums_of_other_entities_are_refused(tmp_path: Path) -> None:
    task = _people(True)
    _learnt(task, tmp_path)
    arrays, facts = read_arrays(tmp_path / SUMS)
    write_arrays(tmp_path / SUMS, {name: rows[: task.nodes] for name, rows in arrays.items()}, facts)
    with pytest.raises(VerificationError, match="another version"):
        _learnt(task, tmp_path)
