"""The clipped sum of a batch, for any model."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from veilgraph.models.base import GenericModel
from veilgraph.models.parameters import Parameters
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import RowGradient
from veilgraph.train.optim import merge
from veilgraph.train.private.clip import NOWHERE, ClippedSum, How, Into
from veilgraph.train.private.generic import generic_sum
from veilgraph.train.private.separable import separable_sum

SMALL, LARGE, STEP = 256, 8192, 128  # statements at a time: at least, at most, and in steps of


def clipped_sum(
    how: How, p: Parameters, batch: TripleBatch, unit: Tensor | None, into: Into = NOWHERE
) -> ClippedSum:
    """The sum of the clipped gradients of the units in a batch; ``unit[b]`` numbers them from 0 (None: one each).

    With ``into`` the sum is added to its tables, whose owner must not let them out without noise.
    Reads confidential data: the batch. Releases: nothing; the sum is to be noised by a mechanism.
    """
    ask = generic_sum if isinstance(how.model, GenericModel) else separable_sum
    return ask(how, p, batch, unit, into)


def shape(expected: float, negatives: int) -> int:
    """How many statements are computed with at a time: a public number, which an expected batch hardly ever exceeds, or parts of one.

    Example: of a thousand expected statements 1,152 at a time; of thirty, 256.
    """
    most = min(max((1 << 22) // max(negatives, 1), SMALL), LARGE)
    likely = expected + 3 * math.sqrt(expected)
    parts = math.ceil(likely / most)
    return max(SMALL, STEP * math.ceil(likely / parts / STEP))


def filled(statements: Tensor, owner: Tensor, negatives: Tensor, size: int) -> tuple[TripleBatch, Tensor]:
    """A batch that is as long as any other: rows that count nothing are added up to a multiple of ``size``; and whose each row is.

    Matrix products choose how they round by the shape of what they are given. With a batch of a length of its own, one statement more
    would round all others anew, and on rows somebody chose for it that decides on which side of a threshold they fall. So the shape is
    public.
    """
    count, more = len(statements), -len(statements) % size
    weight = torch.ones(count + more)
    weight[count:] = 0
    fillers = statements.new_zeros(more, 3)
    alone = owner.new_full((more,), int(owner[-1]) + 1 if count else 0)  # a unit of their own
    return TripleBatch(torch.cat([statements, fillers]), negatives, weight), torch.cat([owner, alone])


def joined(rows: list[RowGradient | None], table: Tensor) -> RowGradient:
    """The sum of several row gradients, with their distinct ids."""
    there = [part for part in rows if part is not None]
    if not there:
        return RowGradient(
            torch.empty(0, dtype=torch.int64), torch.empty(0, table.shape[1], dtype=torch.float64)
        )
    if len(there) == 1 or there[0].ids is None:  # (added to one table)
        return there[0]
    if sum(len(part.values) for part in there) < len(table):
        ids = torch.cat([part.ids for part in there if part.ids is not None])
        return RowGradient(*merge(ids, torch.cat([part.values for part in there])))
    whole, met = torch.zeros_like(table, dtype=torch.float64), torch.zeros(len(table), dtype=torch.bool)
    for part in there:
        assert part.ids is not None
        whole.index_add_(0, part.ids, part.values)
        met[part.ids] = True
    ids = met.nonzero().squeeze(1)
    return RowGradient(ids, whole.index_select(0, ids))
