"""What a model learns."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from veilgraph.models.prior import Prior


@dataclass
class Parameters:
    """A row per entity, a row per relation (twice as many if reciprocal), weights shared by all, perhaps a prior."""

    entities: Tensor
    relations: Tensor
    weights: dict[str, Tensor] = field(default_factory=dict)
    prior: Prior | None = None  # added to every score; not learnt
