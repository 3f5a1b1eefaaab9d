"""The same items in another order. For an observer who takes a list for a set nothing changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.sanitise.base import Request, Sanitiser


@dataclass(frozen=True)
class Shuffle(Sanitiser):
    """Any order is as likely as any other."""

    name: ClassVar[str] = "shuffle"
    promise: ClassVar[str] = "nothing formal"

    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        return rng.permuted(request.lists, axis=1)
