"""Keep the first few, replace the others by what many have: a replacement that says little and is liked by most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.sanitise.base import Replacing, Request


@dataclass(frozen=True)
class Popular(Replacing):
    """By how many people have an item."""

    name: ClassVar[str] = "popular"
    promise: ClassVar[str] = "nothing formal"
    reads_scores: ClassVar[bool] = (
        True  # what many have is also what this person has: not only the list it is given
    )

    def weights(self, request: Request) -> np.ndarray:
        return np.asarray(request.popularity + 1e-3, float)
