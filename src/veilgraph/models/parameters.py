"""What a model learns."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class Parameters:
    """A row per entity, a row per relation (twice as many if reciprocal), and weights shared by all statements."""

    entities: Tensor
    relations: Tensor
    weights: dict[str, Tensor] = field(default_factory=dict)
