"""Tables may be somebody else's choice (a federation's server sends them): whatever they hold, neighbours differ by a clip norm at most."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilgraph import models
from veilgraph.models.parameters import Parameters
from veilgraph.train import negatives
from veilgraph.train.gradients import Objective, TripleBatch
from veilgraph.train.losses import Loss
from veilgraph.train.private.clip import Clip
from veilgraph.train.private.sums import clipped_sum

ENTITIES, RELATIONS, WIDTH, NEGATIVES = 40, 3, 16, 8
SIZES = (0, 5, 10, 15, 18, 19, 20, 25, 30, 35, 38)


def _total(
    model: models.Model, p: Parameters, triples: np.ndarray, wrong: torch.Tensor, loss: str
) -> torch.Tensor:
    objective = Objective(Loss(loss, 1.0, 1.0, ENTITIES if loss == "softmax" else 0), "none", 0.0, True)
    clip = Clip(1.0, True, True, torch.arange(2 * RELATIONS))
    with torch.no_grad():
        found = clipped_sum(model, p, TripleBatch(torch.from_numpy(triples), wrong), None, objective, clip)
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
