"""What an auditor can compute for every canary from the released vectors, the public settings and the seed.

loss       how much better the canary scores than the same question with other tails
rank       where its tail stands among all entities
movement   how far its own rows moved from where they began (the seed tells where): catches noise on touched rows only
direction  how far they moved against the gradient the canary itself would have had at the beginning
counts     how high its own two cells stand in the noisy counts, where there are any
"""

from __future__ import annotations

import numpy as np
import torch

from veilgraph.attack.standing import CHUNK, standing
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.train import negatives
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import Objective
from veilgraph.train.private.clip import Clip, How
from veilgraph.train.private.sums import clipped_sum


def canary_scores(
    model: Model, start: Parameters, final: Parameters, statements: np.ndarray, objective: Objective
) -> dict[str, np.ndarray]:
    """Every score of every canary unit; larger means «in»."""
    count, per_unit, _ = statements.shape
    flat = torch.from_numpy(statements.reshape(-1, 3).astype(np.int64))
    loss, rank = standing(model, final, flat, "tail", objective.reciprocal)
    moved = final.entities - start.entities
    gradient = _gradient(model, start, flat, objective)
    own = torch.stack([flat[:, 0], flat[:, 2]], 1)
    along = -(moved[own] * gradient[own]).sum((1, 2))
    length = (moved[own] ** 2).sum((1, 2))
    scores = {"loss": loss, "rank": -rank, "movement": length, "direction": along}
    if final.prior is not None:
        cells = [
            final.prior.gather(flat[:, 1], side, flat[:, [at]]) for side, at in (("tail", 2), ("head", 0))
        ]
        scores["counts"] = (cells[0] + cells[1]).squeeze(1)
    return {
        name: np.asarray(value.reshape(count, per_unit).double().sum(1)) for name, value in scores.items()
    }


def _gradient(model: Model, p: Parameters, statements: torch.Tensor, objective: Objective) -> torch.Tensor:
    """The gradient of every canary on its own rows at the beginning, as one table (their rows do not overlap)."""
    table = torch.zeros_like(p.entities)
    drawing = np.random.default_rng(0)
    for begin in range(0, len(statements), CHUNK):
        part = statements[begin : begin + CHUNK]
        wrong = torch.from_numpy(negatives.draw_two_sides(drawing, 1, 64, len(p.entities)))
        rows = clipped_sum(How(model, objective, Clip(1.0)), p, TripleBatch(part, wrong), None).entities
        assert rows is not None
        assert rows.ids is not None
        table.index_add_(0, rows.ids, rows.values.float())
    return table
