"""What a private step may move, and the factors that keep every unit's gradient inside one norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from veilgraph.models.base import Model
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import Objective, RowGradient
from veilgraph.train.optim import merge
from veilgraph.train.private import clip_kernels
from veilgraph.train.private.clip_kernels import SLACK
from veilgraph.train.regularisers import penalty_gradient


@dataclass(frozen=True)
class Clip:
    """Which tables a private step may move, and the norm one unit may have on all of them together."""

    norm: float
    entities: bool = True
    relations: bool = True
    rows: Tensor | None = None  # the relation rows confidential statements may be about (public); None: any


class How(NamedTuple):
    """What a unit's gradient is of, and what keeps it small."""

    model: Model
    objective: Objective
    clip: Clip


class Votes(NamedTuple):
    """How many units have each of these entities: changes by at most ``sensitivity`` (L2) with any unit."""

    ids: Tensor
    counts: Tensor
    sensitivity: float


class ClippedSum(NamedTuple):
    """A sum over units that changes by at most ``sensitivity`` (L2, all rows together) with any one of them."""

    entities: RowGradient | None
    relations: RowGradient | None
    sensitivity: float
    loss: float  # for the curator: depends on confidential statements without noise
    norms: Tensor  # for the curator, and for tests
    votes: Votes | None = None


def factors(norms: Tensor, unit: Tensor | None, batch: TripleBatch, clip: Clip) -> Tensor:
    """What each statement's gradient is multiplied with; 0 for fillers and for what is not a number."""
    factor = torch.clamp(clip.norm / (norms * (1 + SLACK) + 1e-12), max=1.0)
    factor = torch.where(torch.isfinite(norms), factor, torch.zeros(()))
    factor = factor if unit is None else factor.index_select(0, unit)
    return factor if batch.weight is None else factor * (batch.weight > 0)


def distinct(ids: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct ids, in the order they are first met, and the place of each id among them."""
    found, place = clip_kernels.distinct(ids.contiguous().numpy())
    return torch.from_numpy(found), torch.from_numpy(place)


class Into(NamedTuple):
    """Tables of float64 that a sum can be added to at once, ``times`` it, instead of being handed over as rows."""

    entities: np.ndarray | None = None
    relations: np.ndarray | None = None
    times: float = 1.0


NOWHERE = Into()


def merged(
    table: np.ndarray | None, times: float, *parts: tuple[Tensor, Tensor, Tensor | None]
) -> RowGradient:
    """The sum of rows with equal ids, each row times its factor (None: 1): on its own, or added to a table.

    Rows of factor 0 are not read. In float64: in float32 one unit more would change how all later ones are rounded.
    """
    ids, start = torch.cat([part[0] for part in parts]), 0
    if table is None:
        found, place = distinct(ids)
        table, times = np.zeros((len(found), parts[0][1].shape[1])), 1.0
    else:
        found, place = None, ids
    for own, rows, factor in parts:
        clip_kernels.add_scaled(
            table,
            place[start : start + len(own)].numpy(),
            rows.contiguous().numpy(),
            (torch.ones(len(own)) if factor is None else factor).numpy(),
            times,
            torch.get_num_threads(),
        )
        start += len(own)
    return RowGradient(found, torch.from_numpy(table))


def squares(rows: Tensor) -> Tensor:
    """The squared norm of each row."""
    return torch.linalg.vector_norm(rows, dim=1).square_()


def penalty(model: Model, objective: Objective, rows: Tensor) -> Tensor:
    """The regulariser's gradient on each row."""
    parts = model.multiple_of if rows.shape[1] == model.entity_width else 1
    return penalty_gradient(objective.regulariser, rows.detach(), parts)


def add_merged(total: Tensor, unit: Tensor, ids: Tensor, rows: Tensor) -> None:
    """Add the squared norms of each unit's rows, equal ids summed first."""
    width = int(ids.max()) + 1 if len(ids) else 1
    keys, summed = merge(unit * width + ids, rows)
    total.index_add_(0, keys // width, squares(summed))


def votes_of(statements: Tensor, owner: Tensor, entities: int, per_unit: int) -> Votes:
    """The entities of the units' own statements, and how many units have each: a unit has at most 2·m, one vote each."""
    pairs = torch.unique(
        torch.cat([owner * entities + statements[:, 0], owner * entities + statements[:, 2]])
    )
    ids, counts = torch.unique(pairs % entities, return_counts=True)
    return Votes(ids, counts, math.sqrt(2 * per_unit))
