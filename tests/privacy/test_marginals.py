"""Noisy marginals: what a statement can change, what is drawn, and what they are good for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from tests import naive
from tests.conformance.test_models import ENTITIES, RELATIONS, batch, dense, make
from tests.conftest import random_graph
from tests.privacy import QUICK, private_run
from veilgraph.certify import verify
from veilgraph.errors import UsageError
from veilgraph.evaluate.popularity import popularity
from veilgraph.export import export
from veilgraph.load import Graph
from veilgraph.mark import mark, unrestricted
from veilgraph.models.prior import Prior
from veilgraph.runs import Run
from veilgraph.train import train
from veilgraph.train.gradients import Objective, sampled
from veilgraph.train.losses import Loss
from veilgraph.train.private import marginals
from veilgraph.train.private.gauss import source


class Silent:
    """Noise that is not there: what is left is the sum before noise."""

    def normal(self, *shape: int) -> np.ndarray:
        return np.zeros(shape)

    def coins(self) -> np.random.Generator:
        return np.random.default_rng(0)


def counts(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The table before noise and smoothing."""
    seen: list[np.ndarray] = []
    monkeypatch.setattr(marginals, "_smooth", lambda table, scale: (seen.append(table.copy()), table)[1])
    marginals.release(graph, unrestricted(graph), 1.0, Silent())  # type: ignore[arg-type]
    return seen[0]


@pytest.mark.parametrize("unit", ["statement", "head"])
def test_sensitivity_of_counts(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removing any one unit changes the table by at most m·√2."""
    graph = random_graph(statements=200)
    marked = graph.with_marks(
        mark(graph, everything=True, unit=unit, per_unit=50 if unit == "head" else None)
    )
    whole = counts(marked, monkeypatch)
    for chosen in range(20):
        gone = marked.train[:, 0] == chosen if unit == "head" else np.arange(len(marked.train)) == chosen
        fewer = marked.with_splits({**marked.splits, "train": marked.train[~gone]})
        assert gone.sum() <= marked.marks.per_unit
        assert np.linalg.norm(whole - counts(fewer, monkeypatch)) <= np.sqrt(2) * gone.sum() + 1e-9


def test_drawing_only_what_exceeds_equals_drawing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number and values of empty cells above the threshold (binomial and KS, p > 1e-6 by fixed seed)."""
    graph = random_graph(entities=300, relations=20, statements=50)
    marked = graph.with_marks(mark(graph, everything=True))
    monkeypatch.setattr(marginals, "WHOLE", 0)
    monkeypatch.setattr(marginals, "LARGE_CHANCE", 0.01)
    noise = source(insecure_seed=0)
    values, number = [], []
    for _ in range(60):
        prior = marginals.release(marked, unrestricted(marked), 4.0, noise)
        found = np.sinh(prior.values.numpy())
        values.append(found)
        number.append(len(found))
        assert (prior.starts.diff() >= 0).all()
    cells = 2 * 20 * 300
    assert stats.binomtest(sum(number), 60 * cells, 0.01).pvalue > 1e-6
    scale = marginals.deviation(4.0, 1)
    edge = stats.norm.isf(0.01)
    tail = np.concatenate(values) / scale
    assert tail.min() >= edge - 1e-3
    assert stats.kstest(tail, lambda x: 1 - stats.norm.sf(x) / 0.01).pvalue > 1e-6


@pytest.mark.parametrize("sparse", [False, True])
def test_prior_is_added_and_found_again(sparse: bool) -> None:
    table = torch.randn(2 * RELATIONS, ENTITIES, generator=torch.Generator().manual_seed(0)).relu()
    prior = Prior(RELATIONS, ENTITIES, table)
    if sparse:
        rows, ids = table.nonzero(as_tuple=True)
        starts = torch.searchsorted(rows, torch.arange(2 * RELATIONS + 1))
        prior = Prior(RELATIONS, ENTITIES, None, starts, ids, table[rows, ids])
    prior = Prior.of(prior.tensors())
    relation = torch.tensor([0, 3, RELATIONS + 1])
    for side, offset in (("tail", 0), ("head", RELATIONS)):
        scores = torch.ones(3, ENTITIES)
        prior.add(scores, relation, side)
        torch.testing.assert_close(scores, 1 + table[relation % RELATIONS + offset])
        ids = torch.tensor([[1, 5], [0, 7], [2, 2]])
        torch.testing.assert_close(prior.gather(relation, side, ids), (scores - 1).gather(1, ids))


def test_gradients_with_a_prior_equal_a_loop() -> None:
    model, p = make("distmult", 1)
    p.prior = Prior(RELATIONS, ENTITIES, torch.randn(2 * RELATIONS, ENTITIES))
    objective, given = Objective(Loss("softmax", 1.0, 1.0, ENTITIES)), batch(8, 4, 5)
    found = sampled(model, p, given, objective)
    entities = p.entities.clone().requires_grad_()
    q = type(p)(entities, p.relations, {}, None)
    total = torch.zeros(())
    b, sides = len(given.triples), len(given.negatives)
    for i in range(2 * b):
        h, r, t = given.triples[i % b].tolist()
        side, source_, target = ("tail", h, t) if i < b else ("head", t, h)
        row = r + (RELATIONS if side == "head" else 0)
        positive = naive.one_sided(model, q, source_, r, target, side, False) + p.prior.table[row, target]
        wrong = [
            torch.tensor(-torch.inf) if n in (h, t)
            else naive.one_sided(model, q, source_, r, n, side, False) + p.prior.table[row, n]
            for n in given.negatives[i // (2 * b // sides)].tolist()
        ]  # fmt: skip
        total = total + naive.loss_of(objective, positive, torch.stack(wrong)) / b
    (expected,) = torch.autograd.grad(total, entities)
    torch.testing.assert_close(dense(found.entities, p.entities), expected, atol=1e-5, rtol=1e-4)


def test_marginals_alone_are_a_model(hospital: Graph, tmp_path: Path) -> None:
    """With much budget they are as good as popularity; the whole budget is charged once."""
    marked = hospital.with_marks(mark(hospital, everything=True))
    run = train(marked, out=tmp_path / "run", model="marginals", epsilon=50.0, threads=1)
    assert run.evaluate("test", graph=marked)["mrr"] == pytest.approx(
        popularity(hospital, "test")["mrr"], abs=0.03
    )
    charged = [line["what"] for line in run.ledger.lines]
    assert charged == ["noisy number of confidential units", "settings", "noisy marginals"]
    assert run.epsilon is not None
    assert 45 < run.epsilon <= 50
    assert verify(run, marked)["valid"]
    (run.folder / "marginals.safetensors").write_bytes(
        b"x" + (run.folder / "marginals.safetensors").read_bytes()[1:]
    )
    assert not verify(Run.open(run.folder), marked)["valid"]


def test_prior_and_steps_share_the_budget(hospital: Graph, tmp_path: Path) -> None:
    run = private_run(hospital, tmp_path / "run", prior="marginals")
    assert run.epsilon is not None
    assert 1.9 < run.epsilon <= 2.0
    events = run.ledger.events
    assert len([e for e in events if e["event"] == "gaussian"]) == 2
    assert sum(e["times"] for e in events if e["event"] == "repeated") == QUICK["private_steps"]
    with pytest.raises(UsageError, match="noisy counts"):
        export(run, tmp_path / "pykeen", format="pykeen")
    assert export(run, tmp_path / "parquet").is_dir()
