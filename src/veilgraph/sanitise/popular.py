"""Keep the first few, replace the others by what many have: a replacement that says little and is liked by most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.sanitise.base import Request, Sanitiser, checked_keep, drawn_order, fill


@dataclass(frozen=True)
class Popular(Sanitiser):
    """``keep`` items stay, the rest is drawn by popularity from all that were not in the list."""

    name: ClassVar[str] = "popular"
    promise: ClassVar[str] = "nothing formal"
    keep: int = 5

    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        keep = checked_keep(self.keep, request.size, request.allowed)
        weights = request.allowed * (request.popularity[None, :] + 1e-3)
        np.put_along_axis(weights, request.lists, 0.0, 1)
        return fill(request.lists, keep, drawn_order(weights, rng))
