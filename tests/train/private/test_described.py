"""Clipped sums on a projection against a naive loop: every separable model, loss and kind of unit, with collisions of every sort."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests import naive
from tests.conformance.test_models import CASES, ENTITIES, dense, make
from tests.train.private.test_clip import private_batch
from veilgraph import registry
from veilgraph.models import model_class
from veilgraph.models.parameters import Parameters
from veilgraph.train import losses
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import Objective
from veilgraph.train.private.clip import SLACK, Clip, How
from veilgraph.train.private.projection import described_sum

SEPARABLE = [case for case in CASES if model_class(case[0]).separable and case[0] != "marginals"]
WIDTH = 5


def made(name: str, norm: int, reciprocal: bool) -> tuple:
    """A model, features of which some are equal, and rows that are made from them."""
    model, p = make(name, norm, reciprocal)
    rng = np.random.default_rng(5)
    features = torch.from_numpy(rng.standard_normal((ENTITIES, WIDTH)).astype(np.float32))
    features[3] = features[4]
    projection = torch.from_numpy(rng.standard_normal((WIDTH, model.entity_width)).astype(np.float32)) * 0.4
    return model, Parameters(features @ projection, p.relations, p.weights), features


@pytest.mark.parametrize(("name", "norm"), SEPARABLE)
@pytest.mark.parametrize("loss", registry.names("losses"))
@pytest.mark.parametrize("reciprocal", [False, True])
def test_sum_on_a_projection_equals_a_loop_over_statements(
    name: str, norm: int, loss: str, reciprocal: bool
) -> None:
    model, p, features = made(name, norm, reciprocal)
    objective = Objective(losses.create(loss, 1.0, 1.0, ENTITIES), "none", 0.0, reciprocal)
    batch = private_batch(chunk=12)
    each = [(features.T @ e, r) for e, r in naive.per_statement(model, p, batch, objective)]
    norms = torch.stack([torch.cat([e.flatten(), r.flatten()]).norm() for e, r in each])
    clip = Clip(float(norms.median()))
    found = described_sum(How(model, objective, clip), p, features, batch, None)
    assert (found.norms >= norms * (1 - 1e-5)).all(), "a norm was under-estimated"
    if model.similarity.name == "dot":
        torch.testing.assert_close(found.norms, norms, atol=1e-4, rtol=1e-3)
    factor = torch.clamp(clip.norm / (found.norms * (1 + SLACK)), max=1.0)
    factor[-1] = 0  # a filler
    expected = [sum(f * part[i] for f, part in zip(factor, each)) for i in range(2)]
    table = torch.zeros(WIDTH, model.entity_width)
    torch.testing.assert_close(dense(found.entities, table), expected[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(dense(found.relations, p.relations), expected[1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["complex", "transe", "rescal"])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-3])
def test_one_unit_changes_the_sum_by_at_most_the_clip(name: str, scale: float) -> None:
    """Neighbouring batches: all statements of one unit more, whatever they are, with rows of any size."""
    model, p, features = made(name, 1, True)
    p = Parameters(p.entities * scale, p.relations)
    objective, clip = Objective(losses.create("softmax", 1.0, 1.0, ENTITIES), "none", 0.0, True), Clip(0.7)
    batch = private_batch(chunk=12)
    unit = torch.tensor([0, 0, 0, 1, 1, 2, 3, 4, 4, 4, 5, 6])
    for gone in range(7):
        sums = []
        for kept in (torch.ones(12, dtype=torch.bool), unit != gone):
            part = TripleBatch(batch.triples[kept], batch.negatives)
            numbers = torch.unique(unit[kept], return_inverse=True)[1]
            found = described_sum(How(model, objective, clip), p, features, part, numbers)
            sums.append((dense(found.entities, torch.zeros(WIDTH, 8)), dense(found.relations, p.relations)))
        change = torch.cat([(a - b).flatten().double() for a, b in zip(*sums)]).norm()
        assert change <= clip.norm * (1 + 1e-6)


def test_terms_that_cancel_are_not_under_estimated() -> None:
    """x ⊗ g − x ⊗ g′ with g′ nearly g: single precision loses the difference, the bound must not."""
    from veilgraph.train.private.projection import _length

    torch.manual_seed(0)
    left, right = torch.randn(500, 64), 1e3 * torch.randn(500, 64)
    other = right * (1 + 1e-4 * torch.randn(500, 64))
    true = ((left.double().norm(dim=1)) * (right.double() - other.double()).norm(dim=1)).float()
    assert (_length([left, left], [right, -other]) >= true * (1 - 1e-6)).all()


@pytest.mark.parametrize("name", ["complex", "distmult", "transe", "rotate"])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("size", [1e19, 1e30, 3e38])
def test_rows_of_any_size_mark_nobody(name: str, norm: int, size: float) -> None:
    """A row beyond all measure: with or without one statement about it, the sum is made of numbers within a clip of each other."""
    model, p, features = made(name, norm, True)
    batch = private_batch(chunk=12)
    p.entities[batch.triples[2, 0]] = size
    p.entities[batch.negatives[0, 0]] = -size
    objective = Objective(losses.create("softmax", 1.0, 1.0, ENTITIES), "none", 0.0, True)
    sums = []
    for kept in (torch.ones(12, dtype=torch.bool), torch.arange(12) != 2):
        part = TripleBatch(batch.triples[kept], batch.negatives)
        found = described_sum(How(model, objective, Clip(1.0)), p, features, part, None)
        sums.append(
            torch.cat(
                [
                    dense(found.entities, torch.zeros(WIDTH, 8)).flatten(),
                    dense(found.relations, p.relations).flatten(),
                ]
            )
        )
    assert torch.isfinite(torch.cat(sums)).all()
    assert (sums[0].double() - sums[1].double()).norm() <= 1 + 1e-6


def test_a_statement_that_diverged_counts_nothing() -> None:
    model, p, features = made("transe", 2, True)
    p.entities[private_batch().triples[1, 0]] = torch.nan
    objective = Objective(losses.create("softmax", 1.0, 1.0, ENTITIES), "none", 0.0, True)
    found = described_sum(How(model, objective, Clip(1.0)), p, features, private_batch(chunk=12), None)
    assert torch.isfinite(found.entities.values).all()
    assert torch.isfinite(found.relations.values).all()
