"""Tables may be somebody else's choice (a federation's server sends them): whatever they hold, neighbours differ by a clip norm at most."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilgraph import models
from veilgraph.models.parameters import Parameters
from veilgraph.train import losses, negatives
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import Objective
from veilgraph.train.private.clip import Clip, How
from veilgraph.train.private.pulls import pulls
from veilgraph.train.private.sums import SMALL, clipped_sum, filled

ENTITIES, RELATIONS, WIDTH, NEGATIVES = 40, 3, 16, 8
SIZES = (0, 5, 10, 15, 18, 19, 20, 25, 30, 35, 38)


def _total(
    model: models.Model, p: Parameters, triples: np.ndarray, wrong: torch.Tensor, loss: str
) -> torch.Tensor:
    objective = Objective(
        losses.create(loss, 1.0, 1.0, ENTITIES if loss == "softmax" else 0), "none", 0.0, True
    )
    clip = Clip(1.0, True, True, torch.arange(2 * RELATIONS))
    with torch.no_grad():
        found = clipped_sum(
            How(model, objective, clip), p, TripleBatch(torch.from_numpy(triples), wrong), None
        )
    parts = []
    for rows, size in ((found.entities, ENTITIES), (found.relations, 2 * RELATIONS)):
        assert rows is not None
        assert rows.ids is not None
        table = torch.zeros(size, rows.values.shape[1], dtype=torch.float64)
        parts.append(table.index_add_(0, rows.ids, rows.values.double()).reshape(-1))
    return torch.cat(parts)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(
    "name", ["transe", "transm", "rotate", "distmult", "complex", "quate", "rescal", "transh"]
)
def test_one_statement_moves_a_sum_by_a_clip_norm_at_most(name: str, norm: int) -> None:
    rng = np.random.default_rng(0)
    model = models.create(name, WIDTH, norm=norm)
    for trial in range(24):
        own = np.random.default_rng(trial)
        entities, relations = model.initialise(ENTITIES, 2 * RELATIONS, own)
        triples = np.stack([rng.integers(0, n, 12) for n in (ENTITIES, RELATIONS, ENTITIES)], 1)
        if name == "transm":
            model.prepare(triples.astype(np.int32), RELATIONS)
        size = 10.0 ** rng.choice(SIZES, size=ENTITIES)
        if trial % 3 == 0:
            size = np.where(rng.random(ENTITIES) < 0.9, 1, size)
        if trial % 3 == 1:
            size = np.full(ENTITIES, 10.0 ** rng.choice(SIZES))
        large = np.clip(entities.numpy().astype(np.float64) * size[:, None] * 3, -3.3e38, 3.3e38)
        p = Parameters(torch.from_numpy(large.astype(np.float32)), relations, model.weights(own))
        drawn = negatives.draw_two_sides(np.random.default_rng(trial), 1, NEGATIVES, ENTITIES)
        wrong = torch.from_numpy(np.stack(np.split(drawn, 2), 1))[0]
        loss = ("margin", "softplus", "self-adversarial", "softmax")[trial % 4]
        with_it, without = (_total(model, p, rows, wrong, loss) for rows in (triples, triples[:-1]))
        assert float((with_it - without).norm()) <= 1.001  # not so where it is no number


@pytest.mark.parametrize(
    ("name", "norm"), [("transe", 2), ("transe", 1), ("rotate", 1), ("distmult", 1), ("rescal", 1)]
)
@pytest.mark.parametrize(("width", "k"), [(8, 1), (8, 2), (8, 8), (128, 16)])
def test_how_many_statements_there_are_rounds_none_of_them_anew(
    name: str, norm: int, width: int, k: int
) -> None:
    """Matrix products choose how they add by their shape; so the shape is public, whatever the batch. Bit by bit, at every size."""
    rng = np.random.default_rng(3)
    model = models.create(name, width, norm=norm)
    entities, relations = model.initialise(ENTITIES, 2 * RELATIONS, rng)
    p = Parameters(1e4 * entities, relations)
    rows = torch.from_numpy(np.stack([rng.integers(0, n, 70) for n in (ENTITIES, RELATIONS, ENTITIES)], 1))
    drawn = negatives.draw_two_sides(rng, 1, k, ENTITIES)
    wrong = torch.from_numpy(np.stack(np.split(drawn, 2), 1))[0]
    objective = Objective(losses.create("softplus", 1.0, 1.0, 0), "none", 0.0, False)

    def parts(count: int, size: int) -> list[torch.Tensor]:
        batch, _ = filled(rows[:count], torch.arange(count), wrong, size)
        with torch.no_grad():
            found = pulls(model, p, batch, None, objective)
        b = len(batch.triples)
        sides = (found.value, found.query, found.on_negative.view(2 * b, -1))
        return [*(part.view(2, b, -1)[:, :count] for part in sides), found.head[:count], found.tail[:count]]

    whole = parts(70, SMALL)
    alone = 0
    for count in (1, 2, 3, 4, 5, 7, 11, 12, 17, 24, 25, 33, 49, 50, 64, 65):
        found = parts(count, SMALL)
        for one, all_ in zip(found[:3], whole[:3]):
            assert torch.equal(one, all_[:, :count])
        assert all(torch.equal(one, all_[:count]) for one, all_ in zip(found[3:], whole[3:]))
        alone += any(
            not torch.equal(one, all_[:, :count]) for one, all_ in zip(parts(count, 1)[:3], whole[:3])
        )
    if (name, width) == ("distmult", 8):
        assert alone > 0  # (without a public shape it is otherwise)


MANY = 98_304  # statements: what each adds may be rounded, what all add must not be


@pytest.mark.parametrize(("name", "norm"), [("transe", 1), ("transe", 2), ("rotate", 1), ("distmult", 1)])
@pytest.mark.parametrize("alike", [True, False])
def test_one_statement_among_very_many_moves_a_sum_by_a_clip_norm_at_most(
    name: str, norm: int, alike: bool
) -> None:
    """The others' rounding must not depend on who else is there: with large rows it once added up to a third of the clip norm."""
    rng = np.random.default_rng(1)
    model = models.create(name, WIDTH, norm=norm)
    entities, relations = model.initialise(ENTITIES, 2 * RELATIONS, rng)
    far = 3e5 * (entities[:1] if alike else entities) / entities.norm(dim=1, keepdim=True)
    p = Parameters(far + entities, relations)
    triples = np.stack([rng.integers(0, n, MANY) for n in (ENTITIES, RELATIONS, ENTITIES)], 1)
    drawn = negatives.draw_two_sides(rng, 1, NEGATIVES, ENTITIES)
    wrong = torch.from_numpy(np.stack(np.split(drawn, 2), 1))[0]
    for loss in ("softplus", "softmax"):
        whole = _total(model, p, triples, wrong, loss)
        for left_out in (0, MANY // 2, MANY - 1):
            without = _total(model, p, np.delete(triples, left_out, 0), wrong, loss)
            assert float((whole - without).norm()) <= 1.001


@pytest.mark.parametrize(
    ("name", "norm"), [("transe", 1), ("transe", 2), ("rotate", 1), ("complex", 1), ("rescal", 1)]
)
def test_what_a_statement_pulls_at_does_not_depend_on_the_others(name: str, norm: int) -> None:
    """Bit by bit, wherever it stands in its batch: else thousands of small differences would be somebody's."""
    rng = np.random.default_rng(2)
    model = models.create(name, 32, norm=norm)
    entities, relations = model.initialise(ENTITIES, 2 * RELATIONS, rng)
    p = Parameters(100 * entities, relations)
    triples = np.stack([rng.integers(0, n, 3000) for n in (ENTITIES, RELATIONS, ENTITIES)], 1)
    drawn = negatives.draw_two_sides(rng, 1, NEGATIVES, ENTITIES)
    wrong = torch.from_numpy(np.stack(np.split(drawn, 2), 1))[0]
    objective = Objective(losses.create("softplus", 1.0, 1.0, 0), "none", 0.0, True)
    kept = np.delete(np.arange(3000), 5)
    with torch.no_grad():
        all_, rest = (
            pulls(model, p, TripleBatch(torch.from_numpy(rows), wrong), None, objective)
            for rows in (triples, triples[kept])
        )
    for own, other in ((all_.head, rest.head), (all_.tail, rest.tail), *zip(all_.relations, rest.relations)):
        assert int((own[kept] != other).any(1).sum()) <= 8  # (the last few, where vectors end)
    whole = all_.on_negative.view(2, 3000, -1)[:, kept]
    assert int((whole != rest.on_negative.view(2, 2999, -1)).any(2).sum()) <= 8
