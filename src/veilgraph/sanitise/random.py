"""Keep the first few, replace the others at random: what the paper does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.sanitise.base import Replacing, Request


@dataclass(frozen=True)
class Random(Replacing):
    """Evenly from all items."""

    name: ClassVar[str] = "random"
    promise: ClassVar[str] = "nothing formal"

    def weights(self, request: Request) -> np.ndarray:
        return np.asarray(np.ones(len(request.popularity)), float)
