"""The best list by scores from which the attribute was taken out, perhaps nearer to what everybody gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.errors import ConfigError, UsageError
from veilgraph.recommend.offers import best_columns, scaled
from veilgraph.sanitise.base import Request, Sanitiser


@dataclass(frozen=True)
class Balanced(Sanitiser):
    """Scores are erased (erase.py) and mixed with the usual ones: ``blend`` of 0 keeps what is personal, 1 nothing."""

    name: ClassVar[str] = "balanced"
    reads_scores: ClassVar[bool] = True
    promise: ClassVar[str] = "measured only; learns without noise from what people told"
    needs_eraser: ClassVar[bool] = True
    blend: float = 0.5

    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        if not 0 <= self.blend <= 1:
            raise ConfigError(f"blend must be between 0 and 1, found {self.blend:g}.")
        if request.eraser is None:
            raise UsageError("balanced lists need people who told their attribute: name it with --attribute.")
        own = scaled(request.eraser(request.scores))
        mixed = (1 - self.blend) * own + self.blend * scaled(request.eraser.mean[None, :])
        return best_columns(np.where(request.allowed, mixed, -np.inf), request.size)
