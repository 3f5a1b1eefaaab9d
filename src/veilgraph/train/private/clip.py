"""What a private step may move, and the factors that keep every unit's gradient inside one norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from veilgraph.models.base import Model
from veilgraph.train.gradients import Objective, Rows, TripleBatch
from veilgraph.train.optim import merge
from veilgraph.train.regularisers import penalty_gradient

SLACK = 1e-4  # for rounding


@dataclass(frozen=True)
class Clip:
    """Which tables a private step may move, and the norm one unit may have on all of them together."""

    norm: float
    entities: bool = True
    relations: bool = True


class ClippedSum(NamedTuple):
    """A sum over units that changes by at most ``sensitivity`` (L2, all rows together) with any one of them."""

    entities: Rows | None
    relations: Rows | None
    sensitivity: float
    loss: float  # for the curator: depends on confidential statements without noise
    norms: Tensor  # for the curator, and for tests
    votes: tuple[Tensor, Tensor] | None = (
        None  # entities of the units' statements, and how many units have each
    )


def factors(norms: Tensor, unit: Tensor | None, batch: TripleBatch, clip: Clip) -> Tensor:
    """What each statement's gradient is multiplied with; 0 for fillers and for what is not a number."""
    factor = torch.clamp(clip.norm / (norms * (1 + SLACK) + 1e-12), max=1.0)
    factor = torch.where(torch.isfinite(norms), factor, torch.zeros(()))
    factor = factor if unit is None else factor.index_select(0, unit)
    return factor if batch.weight is None else factor * (batch.weight > 0)


def scaled(rows: Tensor, factor: Tensor) -> Tensor:
    """Rows times their factors; what is not a number becomes zero."""
    return torch.nan_to_num_(rows * factor.unsqueeze(1), 0.0, 0.0, 0.0)


def squares(rows: Tensor) -> Tensor:
    """The squared norm of each row."""
    return (rows * rows).sum(1)


def penalty(model: Model, objective: Objective, rows: Tensor) -> Tensor:
    """The regulariser's gradient on each row."""
    parts = model.multiple_of if rows.shape[1] == model.entity_width else 1
    return penalty_gradient(objective.regulariser, rows.detach(), parts)


def add_merged(total: Tensor, unit: Tensor, ids: Tensor, rows: Tensor) -> None:
    """Add the squared norms of each unit's rows, equal ids summed first."""
    width = int(ids.max()) + 1 if len(ids) else 1
    distinct, summed = merge(unit * width + ids, rows)
    total.index_add_(0, distinct // width, squares(summed))
