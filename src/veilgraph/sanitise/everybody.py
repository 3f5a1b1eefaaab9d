"""The same list for everybody: what most people have. What a sanitiser must beat, at its utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.recommend.offers import best_columns, without
from veilgraph.sanitise.base import Request, Sanitiser


@dataclass(frozen=True)
class Everybody(Sanitiser):
    """What most people have; where lists leave out known items, what most have and this person has not."""

    name: ClassVar[str] = "everybody"
    promise: ClassVar[str] = "nothing formal"
    reads_scores: ClassVar[bool] = True  # histories: how many have an item
    draws: ClassVar[bool] = False

    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        ranks = np.argsort(np.argsort(request.popularity, kind="stable")).astype(np.float32)
        scores = np.tile(ranks, (len(request.allowed), 1))
        return best_columns(without(scores, ~request.allowed), request.size)
