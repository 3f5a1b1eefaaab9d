"""The best list by scores from which the attribute was taken out, perhaps nearer to what everybody gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veilgraph.errors import ConfigError, UsageError
from veilgraph.recommend.offers import best_columns, scaled, without
from veilgraph.sanitise.base import Request, Sanitiser


@dataclass(frozen=True)
class Balanced(Sanitiser):
    """Takes the attribute out of the scores and mixes them with the usual ones: ``blend`` of 0 keeps what is personal, 1 nothing.

    Blend where lists may repeat known items. With new items only it does harm: a list of usual items without those one has
    tells what one has. ``flatten`` below 1 is a power of the scores: items in the middle then count more against the
    few at the top, when what to erase is learnt and when lists are made.
    """

    name: ClassVar[str] = "balanced"
    reads_scores: ClassVar[bool] = True
    promise: ClassVar[str] = "measured only; learns without noise from what people told"
    needs_eraser: ClassVar[bool] = True
    draws: ClassVar[bool] = False
    blend: float = 0.0
    flatten: float = 1.0

    def seen(self, scores: np.ndarray) -> np.ndarray:
        return scores if self.flatten == 1 else np.asarray(np.maximum(scores, 0) ** np.float32(self.flatten))

    def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
        if not 0 <= self.blend <= 1:
            raise ConfigError(f"blend must be between 0 and 1, found {self.blend:g}.")
        if not 0 < self.flatten <= 1:
            raise ConfigError(f"flatten must be above 0 and at most 1, found {self.flatten:g}.")
        if request.eraser is None:
            raise UsageError("balanced lists need people who told their attribute: name it with --attribute.")
        mixed = request.eraser(self.seen(request.scores))
        if self.blend:
            mixed = (1 - self.blend) * scaled(mixed) + self.blend * scaled(request.eraser.mean[None, :])
        return best_columns(without(mixed, ~request.allowed), request.size)
