"""Ranking, metrics and answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import random_graph
from veilgraph.errors import InputError, RunError, UnknownNameError, UsageError
from veilgraph.load import Graph, save
from veilgraph.mark import mark
from veilgraph.rank.answers import Answers
from veilgraph.rank.metrics import harmonic, mapping_classes, summarise
from veilgraph.rank.popularity import popularity
from veilgraph.run.run import Run
from veilgraph.train import train


@pytest.fixture(scope="module")
def run(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("evaluate")
    save(hospital, folder / "graph")
    return train(
        str(folder / "graph"), out=folder / "run", model="complex", dimension=32, epochs=15, threads=1
    )


def test_metrics_by_hand() -> None:
    found = summarise(np.array([1.0, 2.0, 4.0, 20.0]), np.array([100] * 4))
    assert found["mrr"] == pytest.approx((1 + 0.5 + 0.25 + 0.05) / 4)
    assert found["mr"] == pytest.approx(6.75)
    assert (found["hits@1"], found["hits@3"], found["hits@10"]) == (0.25, 0.5, 0.75)
    assert summarise(np.array([1.0]), np.array([50]))["adjusted_mrr"] == pytest.approx(1)
    assert summarise(np.empty(0), np.empty(0))["mrr"] == 0


def test_adjusted_mrr_of_random_ranks_is_zero() -> None:
    """20,000 uniform ranks: the standard error is below 0.001, so 0.005 fails less than once in a million runs."""
    ranks = np.random.default_rng(0).integers(1, 101, 20_000).astype(float)
    assert abs(summarise(ranks, np.full(20_000, 100))["adjusted_mrr"]) < 0.005
    assert harmonic(np.array([1.0, 2.0, 3.0])).tolist() == pytest.approx([1, 1.5, 11 / 6])


def test_answers_are_distinct_and_found() -> None:
    triples = np.array([[0, 0, 3], [0, 0, 1], [0, 0, 3], [1, 1, 2]])
    answers = Answers.of(triples, 2, side="tail")
    first, last = answers.spans(np.array([0, 1, 1]), np.array([0, 1, 0]))
    assert [answers.answers[a:b].tolist() for a, b in zip(first, last)] == [[1, 3], [2], []]


def test_mapping_classes() -> None:
    train_split = np.array(
        [[0, 0, 1], [2, 0, 3], [0, 1, 1], [0, 1, 2], [0, 1, 3], [1, 2, 0], [2, 2, 0], [3, 2, 0]]
    )
    assert mapping_classes(train_split, 3).tolist() == ["1-1", "1-N", "N-1"]


def test_evaluate_reports_everything(run: Run, hospital: Graph) -> None:
    found = run.evaluate("test", details=True)
    assert found["queries"] == 2 * len(hospital.splits["test"])
    assert found["mrr"] > popularity(hospital)["mrr"]
    assert sum(m["queries"] for m in found["relations"].values()) == found["queries"]
    assert sum(m["queries"] for m in found["classes"].values()) == found["queries"]
    assert (run.folder / "metrics.json").exists()


def test_memory_bound_does_not_change_ranks(run: Run) -> None:
    assert run.evaluate("test")["mrr"] == run.evaluate("test", memory=1)["mrr"]


def test_predict_leaves_known_facts_out(run: Run, hospital: Graph) -> None:
    h, r, t = hospital.train[0]
    head, relation, tail = hospital.entities[h], hospital.relations[r], hospital.entities[t]
    answers = run.predict(head=head, relation=relation, top=len(hospital.entities))
    known = hospital.triples[(hospital.triples[:, 0] == h) & (hospital.triples[:, 1] == r)][:, 2]
    assert {a["entity"] for a in answers} == set(hospital.entities) - set(hospital.entities.names(known))
    everything = run.predict(head=head, relation=relation, top=len(hospital.entities), known=True)
    assert tail in {a["entity"] for a in everything}
    assert [a["rank"] for a in answers[:3]] == [1, 2, 3]
    assert answers[0]["score"] >= answers[1]["score"]


def test_predict_agrees_with_the_ranking(run: Run, hospital: Graph) -> None:
    from veilgraph.rank.ranking import Ranker

    statement = hospital.splits["test"][:1]
    others = np.array([s for s in hospital.triples.tolist() if s != statement[0].tolist()])
    ranks = Ranker(others, len(hospital.relations)).rank(
        run.model, run.parameters, statement, reciprocal=True
    )
    tail = hospital.entities[int(statement[0, 2])]
    everything = run.predict(
        hospital.entities[int(statement[0, 0])],
        hospital.relations[int(statement[0, 1])],
        top=10**6,
        known=True,
    )
    known = set(
        hospital.entities.names(
            others[(others[:, 0] == statement[0, 0]) & (others[:, 1] == statement[0, 1])][:, 2]
        )
    )
    shown = [a["entity"] for a in everything if a["entity"] not in known]
    assert shown.index(tail) + 1 == ranks.rank[0]


def test_questions_that_cannot_be_answered(run: Run) -> None:
    with pytest.raises(UnknownNameError, match="Nearest"):
        run.predict(head="patient/1x", relation="takes")
    with pytest.raises(UnknownNameError, match="takes"):
        run.predict(head="patient/1", relation="take")
    with pytest.raises(UsageError, match="one side"):
        run.predict(head="patient/1", relation="takes", tail="drug/x")
    with pytest.raises(UnknownNameError, match="There are: train, valid, test"):
        run.evaluate("tst")


def test_the_wrong_graph_is_refused(run: Run) -> None:
    with pytest.raises(RunError, match="is not the graph of"):
        run.evaluate("test", graph=random_graph())
    with pytest.raises(InputError):
        Run.open("nowhere")


def test_baselines_are_told_apart_by_marks(hospital: Graph, tmp_path: Path) -> None:
    """A figure of confidential facts needs what popular answers and chance reach on those very facts beside it."""
    from veilgraph import report
    from veilgraph.rank.metrics import summarise
    from veilgraph.rank.popularity import popular_ranks

    graph = hospital.with_marks(mark(hospital, relations=["has*"]))
    run = train(graph, out=tmp_path / "run", model="distmult", dimension=8, epochs=1, threads=1)
    ranks, both = popular_ranks(graph, "test"), np.concatenate([graph.secret("test")] * 2)
    mrr = summarise(ranks.rank[both], ranks.candidates[both])["mrr"]
    found = run.evaluate("test", graph=graph)
    assert found["popular"]["confidential"]["mrr"] == pytest.approx(mrr)
    text = report(run, graph=graph, out=tmp_path / "r.md", format="md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| guessing")]
    assert sum("confidential" in row for row in rows) == 2
    assert any("popular" in row and "confidential" in row and f"{mrr:.4g}" in row for row in rows)
    short = rows[:2]
    assert all("—" not in row.split("|")[3] for row in short)  # in «In short» too
