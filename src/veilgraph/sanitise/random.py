"""Keep the first few, replace the others at random: what the paper does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.sanitise.base import Request, Sanitiser, checked_keep, drawn_order, fill


@dataclass(frozen=True)
class Random(Sanitiser):
    """``keep`` items stay, the rest is drawn evenly from all that were not in the list."""

    name: ClassVar[str] = "random"
    promise: ClassVar[str] = "nothing formal"
    keep: int = 5

    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        keep = checked_keep(self.keep, request.size, request.allowed)
        weights = request.allowed.astype(float)
        np.put_along_axis(weights, request.lists, 0.0, 1)
        return fill(request.lists, keep, drawn_order(weights, rng))
