"""Clipped sums against a naive loop: every model, loss and kind of unit, with collisions of every sort."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests import naive
from tests.conformance.test_models import CASES, ENTITIES, RELATIONS, dense, make
from veilgraph import registry
from veilgraph.train import losses, negatives
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import Objective
from veilgraph.train.private.clip import SLACK, Clip, How
from veilgraph.train.private.pulls import pulls
from veilgraph.train.private.sums import clipped_sum


def private_batch(size: int = 12, chunk: int = 4, k: int = 6) -> TripleBatch:
    """Statements of a small vocabulary: heads equal tails, negatives equal heads and tails, statements repeat."""
    rng = np.random.default_rng(3)
    triples = np.stack(
        [
            rng.integers(ENTITIES, size=size),
            rng.integers(RELATIONS, size=size),
            rng.integers(ENTITIES, size=size),
        ],
        1,
    )
    triples[0, 2] = triples[0, 0]
    triples[3] = triples[2]
    wrong = negatives.draw_two_sides(rng, size // chunk, k, ENTITIES)
    weight = torch.ones(size)
    weight[-1] = 0
    return TripleBatch(torch.from_numpy(triples), torch.from_numpy(wrong), weight)


@pytest.mark.parametrize(("name", "norm"), CASES)
@pytest.mark.parametrize("loss", registry.names("losses"))
@pytest.mark.parametrize("reciprocal", [False, True])
def test_clipped_sum_equals_a_loop_over_statements(name: str, norm: int, loss: str, reciprocal: bool) -> None:
    model, p = make(name, norm, reciprocal)
    objective = Objective(losses.create(loss, 1.0, 1.0, ENTITIES), "l2", 0.01, reciprocal)
    batch = private_batch()
    each = naive.per_statement(model, p, batch, objective)
    norms = torch.stack([torch.cat([e.flatten(), r.flatten()]).norm() for e, r in each])
    clip = Clip(float(norms.median()))
    found = clipped_sum(How(model, objective, clip), p, batch, None)
    assert (found.norms >= norms * (1 - 1e-5)).all(), "a norm was under-estimated"
    exact = model.similarity.name not in ("l1", "l2", "modulus") or not model.separable
    if exact:
        torch.testing.assert_close(found.norms, norms, atol=1e-5, rtol=1e-4)
    else:
        assert (found.norms <= norms * 1.25 + 1e-3).all()
    factor = torch.clamp(clip.norm / (found.norms * (1 + SLACK)), max=1.0)
    factor[-1] = 0  # a filler
    expected = [sum(f * part[i] for f, part in zip(factor, each)) for i in range(2)]
    torch.testing.assert_close(dense(found.entities, p.entities), expected[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(dense(found.relations, p.relations), expected[1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "norm"), [("transe", 1), ("transe", 2), ("rotate", 1), ("complex", 1), ("transh", 1)]
)
@pytest.mark.parametrize("tables", [(True, True), (True, False), (False, True)])
def test_units_of_several_statements_stay_inside_the_clip(
    name: str, norm: int, tables: tuple[bool, bool]
) -> None:
    model, p = make(name, norm)
    objective = Objective(losses.create("softmax", 1.0, 1.0, ENTITIES), "none", 0.0, False)
    batch = private_batch()
    unit = torch.tensor([0, 0, 1, 1, 0, 2, 3, 3, 3, 1, 2, 4])
    clip = Clip(0.05, *tables)
    for alone in range(4):
        weight = (unit == alone).float()
        one = clipped_sum(How(model, objective, clip), p, batch._replace(weight=weight), unit)
        parts = [rows.values for rows in (one.entities, one.relations) if rows is not None]
        norm_of_sum = torch.cat([part.flatten() for part in parts]).norm()
        assert norm_of_sum <= clip.norm
        assert norm_of_sum > 0.3 * clip.norm, "the bound is needlessly loose"


@pytest.mark.parametrize(("name", "norm"), CASES)
@pytest.mark.parametrize("tables", [(True, True), (False, True)])
def test_sums_of_neighbours_differ_by_at_most_the_clip(
    name: str, norm: int, tables: tuple[bool, bool]
) -> None:
    """Add or remove one unit, down to an empty batch: collisions, repeated statements and h = t included."""
    model, p = make(name, norm, reciprocal=True)
    objective = Objective(losses.create("softmax", 1.0, 1.0, ENTITIES), "l2", 0.01, True)
    batch, clip = private_batch(), Clip(0.1, *tables)

    def table(weight: torch.Tensor) -> torch.Tensor:
        found = clipped_sum(How(model, objective, clip), p, batch._replace(weight=weight), None)
        pairs = ((found.entities, p.entities), (found.relations, p.relations))
        return torch.cat([dense(rows, like).flatten() for rows, like in pairs if rows is not None])

    weight = torch.ones(len(batch.triples))
    for gone in range(len(weight)):
        before = table(weight)
        weight[gone] = 0
        assert (before - table(weight)).norm() <= clip.norm * (1 + 1e-5)
    assert table(weight).norm() == 0


def test_a_unit_is_not_held_against_its_own_entities() -> None:
    """Norms add up rows of a unit's own entities and rows of negatives as if they never were the same."""
    model, p = make("complex", 1)
    objective = Objective(losses.create("softmax", 1.0, 1.0, ENTITIES), "none", 0.0, False)
    batch = private_batch()
    unit = torch.tensor([0, 0, 1, 1, 0, 2, 3, 3, 3, 1, 2, 4])
    found = pulls(model, p, batch, unit, objective).on_negative.view(2, len(unit), -1)
    sides, chunk = batch.negatives.view(2, -1, batch.negatives.shape[1]), len(unit) // 3
    met = 0
    for side, place in np.ndindex(2, len(unit)):
        own = batch.triples[unit == unit[place]][:, [0, 2]]
        same = torch.isin(sides[side, place // chunk], own)
        met += int(same.sum())
        assert (found[side, place][same] == 0).all()
        assert (found[side, place][~same] != 0).all()
    assert met > 10


def test_gradients_that_are_not_numbers_count_as_zero() -> None:
    model, p = make("complex", 1)
    objective = Objective(losses.create("softmax", 1.0, 1.0, ENTITIES))
    batch = private_batch()
    p.relations[batch.triples[5, 1]] = 1e38
    found = clipped_sum(How(model, objective, Clip(1.0)), p, batch, None)
    for rows in (found.entities, found.relations):
        assert rows is not None
        assert rows.values.isfinite().all()
