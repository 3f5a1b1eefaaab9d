"""The clipped sum of a batch, for any model."""

from __future__ import annotations

from torch import Tensor

from veilgraph.models.base import GenericModel, Model
from veilgraph.models.parameters import Parameters
from veilgraph.train.gradients import Objective, TripleBatch
from veilgraph.train.private.clip import NOWHERE, Clip, ClippedSum, Into
from veilgraph.train.private.generic import generic_sum
from veilgraph.train.private.separable import separable_sum


def clipped_sum(
    model: Model,
    p: Parameters,
    batch: TripleBatch,
    unit: Tensor | None,
    objective: Objective,
    clip: Clip,
    into: Into = NOWHERE,
) -> ClippedSum:
    """The sum of the clipped gradients of the units in a batch; ``unit[b]`` numbers them from 0 (None: one each).

    With ``into`` the sum is added to its tables, whose owner must not let them out without noise.
    Reads confidential data: the batch. Releases: nothing; the sum is to be noised by a mechanism.
    """
    if isinstance(model, GenericModel):
        return generic_sum(model, p, batch, unit, objective, clip, into)
    return separable_sum(model, p, batch, unit, objective, clip, into)
