"""Statements that count less than one: three halves of a statement pull as one and a half, and what counts nothing is not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import random_graph
from veilgraph import models
from veilgraph.config import TrainConfig, settle
from veilgraph.errors import InputError
from veilgraph.load import Graph, save
from veilgraph.load.store import open_graph
from veilgraph.rng import Streams
from veilgraph.train.batches import QueryBatch, TripleBatch
from veilgraph.train.gradients import Gradients, exact, sampled
from veilgraph.train.state import TrainingState
from veilgraph.train.tasks.links import Links, objective_of

HEADS = torch.tensor([[0, 0, 5], [1, 1, 6], [2, 0, 7]])


def world(candidates: str, loss: str, regulariser: str = "n3"):  # type: ignore[no-untyped-def]
    graph = random_graph(entities=20, relations=2, statements=60)
    config = TrainConfig.of(
        {"model": "complex", "dimension": 8, "candidates": candidates, "loss": loss, "regulariser": regulariser,
         "regulariser_weight": 0.1, "reciprocal": True, "negatives": 5, "chunk": 3, "batch": 16, "epochs": 1}
    )  # fmt: skip
    settings = settle(config)
    model = models.create("complex", 8, norm=1)
    state = TrainingState.fresh(graph, model, settings, Streams(0))
    return graph, settings, model, state.parameters, objective_of(settings, 20)


def same(one: Gradients, other: Gradients, factor: float) -> None:
    """The same pull on every row, but for a factor."""

    def whole(gradient: Gradients, name: str, rows: int) -> torch.Tensor:
        found = getattr(gradient, name)
        table = torch.zeros(rows, found.values.shape[1])
        ids = torch.arange(rows) if found.ids is None else found.ids
        return table.index_add_(0, ids, found.values)

    for name, rows in (("entities", 20), ("relations", 4)):
        torch.testing.assert_close(
            whole(one, name, rows), factor * whole(other, name, rows), rtol=1e-4, atol=1e-7
        )


@pytest.mark.parametrize("loss", ["softmax", "softplus"])
def test_weights_count_as_repetitions_do_with_sampled_answers(loss: str) -> None:
    _, _, model, p, objective = world("sampled", loss)
    wrong = torch.tensor([[8, 9, 10, 11, 12], [13, 14, 15, 16, 17]])
    weighted = sampled(model, p, TripleBatch(HEADS, wrong, torch.tensor([0.5, 1.0, 0.0])), objective)
    repeated = torch.stack([HEADS[0], HEADS[1], HEADS[1]])
    same(weighted, sampled(model, p, TripleBatch(repeated, wrong), objective), 1.0)


def questions(answers: list[int], weight: list[float] | None) -> QueryBatch:
    """Two questions; the first has all answers but the last."""
    owner = torch.tensor([0] * (len(answers) - 1) + [1])
    return QueryBatch(
        torch.tensor([0, 1]), torch.tensor([0, 1]), torch.zeros(2, dtype=torch.bool), owner, torch.tensor(answers),
        backward=torch.zeros(2, dtype=torch.bool), weight=None if weight is None else torch.tensor(weight),
    )  # fmt: skip


def test_weights_count_as_repetitions_do_against_everybody() -> None:
    _, _, model, p, objective = world("all", "softmax")
    weighted = exact(model, p, questions([5, 6, 7, 8], [0.5, 1.0, 0.0, 0.5]), objective)
    same(weighted, exact(model, p, questions([5, 6, 6, 8], None), objective), 1.0)
    all_one = exact(model, p, questions([5, 6, 7, 8], [1.0] * 4), objective)
    plain = exact(model, p, questions([5, 6, 7, 8], None), objective)
    same(all_one, plain, 1.0)
    assert all_one.loss == pytest.approx(plain.loss)


def test_soft_labels_are_the_cross_entropy_of_each_cell() -> None:
    """softplus against everybody: Σ softplus(s) − Σ w·s, by automatic differentiation."""
    _, _, model, p, objective = world("all", "softplus", "none")
    weight = [0.3, 1.0, 0.2, 0.9]
    found = exact(model, p, questions([5, 6, 7, 8], weight), objective)
    entities = p.entities.clone().requires_grad_()
    query = model.compose(entities[[0, 1]], p.relations[[0, 1]])
    scores = query @ entities.T
    told = sum(w * scores[o, a] for w, o, a in zip(weight, [0, 0, 0, 1], [5, 6, 7, 8]))
    value = (torch.nn.functional.softplus(scores).sum() - told) / sum(weight)
    value.backward()
    assert found.loss == pytest.approx(float(value.detach()), rel=1e-5)
    torch.testing.assert_close(found.entities.values, entities.grad, rtol=1e-4, atol=1e-6)


def test_weights_follow_statements(tmp_path: Path) -> None:
    """Through splits, saving and tasks; nothing but numbers from 0 to 1 is read."""
    graph = random_graph(entities=20, relations=2, statements=60)
    rng = np.random.default_rng(0)
    weights = {name: rng.random(len(rows)).astype(np.float32) for name, rows in graph.splits.items()}
    weighed = Graph(graph.entities, graph.relations, graph.splits, weights=weights)
    assert weighed.fingerprint != graph.fingerprint
    turned = weighed.with_splits({"train": graph.train[::-1]})
    np.testing.assert_array_equal(turned.weight("train"), weights["train"][::-1])
    save(weighed, tmp_path / "graph")
    again = open_graph(tmp_path / "graph")
    for name in graph.splits:
        np.testing.assert_array_equal(again.weight(name), weights[name])
    _, settings, model, _, _ = world("sampled", "softmax")
    batch = next(Links(weighed, model, settings, Streams(0)).batches(0))
    by_key = dict(zip(weighed.keys(weighed.train).tolist(), weights["train"].tolist()))
    rows = batch.triples.numpy()
    told = batch.weight.numpy()  # type: ignore[union-attr]
    for key, weight in zip(weighed.keys(rows).tolist(), told.tolist()):
        assert weight in (0.0, pytest.approx(by_key[key]))
    with pytest.raises(InputError, match="for every statement"):
        Graph(graph.entities, graph.relations, graph.splits, weights={n: w[:-1] for n, w in weights.items()})
