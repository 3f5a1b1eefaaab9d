"""What every scorer must do. A new file in models/ is tested here without another line."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests import naive
from tests.conftest import random_graph
from veilgraph import models, registry
from veilgraph.errors import ConfigError
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rank.ranking import Ranker
from veilgraph.rank.scoring import score_all
from veilgraph.train import losses, negatives
from veilgraph.train.batches import QueryBatch, TripleBatch
from veilgraph.train.gradients import Objective, RowGradient, exact, sampled

CASES = [(name, 1) for name in registry.names("models")] + [("transe", 2), ("transm", 2), ("rotate", 2)]
SEPARABLE = [case for case in CASES if models.model_class(case[0]).separable]
ENTITIES, RELATIONS = 20, 4


def make(name: str, norm: int, reciprocal: bool = False, dimension: int = 8) -> tuple[Model, Parameters]:
    """A model with rows of ordinary size."""
    model = models.create(name, dimension, norm=norm)
    model.prepare(random_graph().train, RELATIONS)
    rng = np.random.default_rng(1)
    relations = RELATIONS * (2 if reciprocal else 1)
    if reciprocal and model.relation_scale is not None:
        model.relation_scale = model.relation_scale.repeat(2)
    p = Parameters(*model.initialise(ENTITIES, relations, rng), model.weights(rng))
    p.entities += torch.from_numpy(rng.standard_normal(p.entities.shape).astype(np.float32)) * 0.4
    p.relations += torch.from_numpy(rng.standard_normal(p.relations.shape).astype(np.float32)) * 0.4
    return model, p


def dense(rows: RowGradient, like: torch.Tensor) -> torch.Tensor:
    """A row gradient as a whole table."""
    return (
        rows.values
        if rows.ids is None
        else torch.zeros_like(like).index_add_(0, rows.ids, rows.values.to(like.dtype))
    )


def batch(size: int, chunk: int, k: int, *, padded: bool = False) -> TripleBatch:
    """Random statements; small vocabulary, so that negatives collide with heads and tails."""
    rng = np.random.default_rng(2)
    triples = np.stack(
        [
            rng.integers(ENTITIES, size=size),
            rng.integers(RELATIONS, size=size),
            rng.integers(ENTITIES, size=size),
        ],
        1,
    )
    triples[0, 2] = triples[0, 0]  # head = tail
    wrong = negatives.draw(rng, 2 * size // chunk, k, ENTITIES)
    weight = torch.ones(size)
    weight[-1] = 0
    return TripleBatch(torch.from_numpy(triples), torch.from_numpy(wrong), weight if padded else None)


@pytest.mark.parametrize(("name", "norm"), CASES)
def test_shapes_and_start_are_seeded(name: str, norm: int) -> None:
    model = models.create(name, 8, norm=norm)
    first = model.initialise(5, 3, np.random.default_rng(0))
    again = model.initialise(5, 3, np.random.default_rng(0))
    assert first[0].shape == (5, model.entity_width)
    assert first[1].shape == (3, model.relation_width)
    assert all(
        torch.equal(a, b) and a.dtype == torch.float32 and a.isfinite().all() for a, b in zip(first, again)
    )


@pytest.mark.parametrize("name", registry.names("models"))
def test_documents_itself(name: str) -> None:
    model = models.model_class(name)
    assert model.formula
    assert model.citation
    assert model.__doc__
    assert model.search_space, "a search space for veil tune"
    assert model.defaults


@pytest.mark.parametrize("name", registry.names("models"))
def test_bad_dimension_says_what_to_do(name: str) -> None:
    if models.model_class(name).multiple_of > 1:
        with pytest.raises(ConfigError, match="multiple of"):
            models.create(name, 7)
    with pytest.raises(ConfigError):
        models.create(name, 0)


@pytest.mark.parametrize(("name", "norm"), SEPARABLE)
def test_both_sides_give_the_same_score(name: str, norm: int) -> None:
    model, p = make(name, norm)
    head, tail = p.entities[:6], p.entities[6:12]
    relation = p.relations[torch.arange(6) % RELATIONS]
    forward = model.similarity.pairs(model.compose(head, relation), tail)
    backward = model.similarity.pairs(model.compose_inverse(tail, relation), head)
    torch.testing.assert_close(forward, backward, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("name", "norm"), CASES)
@pytest.mark.parametrize("side", ["tail", "head"])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_scores_against_all_entities_equal_the_formula(
    name: str, norm: int, side: str, reciprocal: bool
) -> None:
    model, p = make(name, norm, reciprocal)
    source, relation = torch.tensor([3, 5, 3]), torch.tensor([0, 3, 2])
    scores = score_all(model, p, source, relation, side=side, reciprocal=reciprocal)
    expected = torch.tensor(
        [
            [float(naive.one_sided(model, p, int(s), int(r), e, side, reciprocal)) for e in range(ENTITIES)]
            for s, r in zip(source, relation)
        ]
    )
    torch.testing.assert_close(scores, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("name", "norm"), CASES)
@pytest.mark.parametrize("loss", registry.names("losses"))
@pytest.mark.parametrize("reciprocal", [False, True])
def test_sampled_gradient_equals_a_loop(name: str, norm: int, loss: str, reciprocal: bool) -> None:
    model, p = make(name, norm, reciprocal)
    regulariser = "n3" if loss == "softmax" else "l2"
    objective = Objective(losses.create(loss, 2.0, 0.7, ENTITIES), regulariser, 0.1, reciprocal)
    statements = batch(6, 3, 7, padded=True)
    found = sampled(model, p, statements, objective)
    value, entities, relations = naive.sampled(model, p, statements, objective)
    assert found.loss == pytest.approx(value, rel=1e-4)
    torch.testing.assert_close(dense(found.entities, p.entities), entities, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(dense(found.relations, p.relations), relations, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("name", "norm"), SEPARABLE)
@pytest.mark.parametrize("loss", ["softmax", "softplus"])
@pytest.mark.parametrize("cells", [1 << 20, 45])
def test_exact_gradient_equals_a_loop(name: str, norm: int, loss: str, cells: int) -> None:
    model, p = make(name, norm)
    objective = Objective(losses.create(loss, 1.0, 1.0, ENTITIES), "n3", 0.05)
    questions = QueryBatch(
        source=torch.tensor([1, 4, 4, 9]),
        relation=torch.tensor([0, 3, 0, 2]),
        inverse=torch.tensor([False, True, False, True]),
        owner=torch.tensor([0, 0, 1, 2, 3, 3, 3]),
        answers=torch.tensor([2, 3, 4, 4, 9, 1, 0]),
    )
    found = exact(model, p, questions, objective, cells)
    value, entities, relations = naive.exact(model, p, questions, objective)
    assert found.loss == pytest.approx(value, rel=1e-4)
    torch.testing.assert_close(dense(found.entities, p.entities), entities, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(dense(found.relations, p.relations), relations, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(("name", "norm"), CASES)
def test_ranks_equal_a_loop(name: str, norm: int) -> None:
    model, p = make(name, norm)
    graph = random_graph()
    p.entities[3] = p.entities[4]  # a tie
    test = graph.splits["test"]
    found = Ranker(graph.triples, RELATIONS).rank(model, p, test, reciprocal=False, memory=ENTITIES * 4 * 3)
    known = {tuple(t) for t in graph.triples.tolist()}
    for i, (h, r, t) in enumerate(np.concatenate([test, test]).tolist()):
        side = "tail" if i < len(test) else "head"
        source, target = (h, t) if side == "tail" else (t, h)
        relation = torch.tensor([r])
        scores = score_all(model, p, torch.tensor([source]), relation, side=side, reciprocal=False)[0]
        others = [
            e
            for e in range(ENTITIES)
            if e != target and ((h, r, e) if side == "tail" else (e, r, t)) not in known
        ]
        above = sum(float(scores[e]) > float(scores[target]) for e in others)
        same = sum(float(scores[e]) == float(scores[target]) for e in others)
        assert found.rank[i] == 1 + above + same / 2
        assert found.candidates[i] == len(others) + 1


@pytest.mark.parametrize("name", registry.names("models"))
def test_learns_a_small_graph(name: str, hospital, tmp_path) -> None:  # type: ignore[no-untyped-def]
    from veilgraph.rank.popularity import popularity
    from veilgraph.train import train

    epochs = 25 if models.model_class(name).separable else 50  # with fewer negatives, they take longer
    run = train(
        hospital, model=name, out=tmp_path / "run", epochs=epochs, dimension=32, validate_every=5, threads=1
    )
    found = run.evaluate("test", graph=hospital)
    more = 0.02 if models.model_class(name).learns else -0.02  # marginals are popularity
    assert found["mrr"] > popularity(hospital)["mrr"] + more


def test_close_pairs_have_bounded_l2_gradients() -> None:
    """The product form of the Euclidean distance cancels; its gradient must keep a norm of about 1 all the same."""
    from veilgraph.models.similarity import L2_DISTANCE

    q = torch.randn(1, 1, 128, generator=torch.Generator().manual_seed(0))
    for distance in (1e-1, 1e-3, 1e-5, 0.0):
        c = q + distance * torch.nn.functional.normalize(torch.ones_like(q), dim=-1)
        given = (q, c, torch.ones(1, 1, 1), L2_DISTANCE.table(q, c))
        on_q, on_c = L2_DISTANCE.pull_query(*given), L2_DISTANCE.pull_candidates(*given)
        assert float(on_q.norm()) <= 1.01
        assert float(on_c.norm()) <= 1.01


def test_one_entity_and_one_statement() -> None:
    """The smallest graph there is trains without falling over."""
    from veilgraph.load import Graph, Vocabulary
    from veilgraph.train import complete_config
    from veilgraph.train.session import Session

    graph = Graph(Vocabulary(["a"]), Vocabulary(["r"], "relation"), {"train": np.array([[0, 0, 0]])})
    for name in registry.names("models"):
        config, _ = complete_config(
            graph, {"model": name, "dimension": 4, "candidates": "sampled", "threads": 1}
        )
        session = Session.open(graph, config)
        plan, state = session.ordinary_plan(), session.state
        for item in plan.batches(0):
            assert np.isfinite(plan.step(state.parameters, state.optimisers, item, 0.1))
