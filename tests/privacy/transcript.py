"""What a training really did, seen from below: every coin it tossed for a batch, every number of noise it drew.

Noise is replaced by a constant, so that what was multiplied with it can be read off, draw by draw, and the coins of batches are
fixed: two trainings that differ in the constant alone differ in the tables by the noise alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from veilgraph.noise import gauss, measure
from veilgraph.train.private import batches


class Coins:
    """A generator with a fixed seed that writes down at which rate batches are drawn, and how wide a Gumbel draw is."""

    def __init__(self, seen: Transcript) -> None:
        self.seen, self.real = seen, np.random.default_rng(8)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def binomial(self, count: int, rate: float) -> int:
        self.seen.rates.append(float(rate))
        self.seen.drawn.append(int(self.real.binomial(count, rate)))
        return self.seen.drawn[-1]

    def gumbel(self, centre: float, scale: float, size: int) -> np.ndarray:
        self.seen.gumbels.append(float(scale))
        return self.real.gumbel(centre, scale, size)


@dataclass
class Transcript:
    """The draws of a training, in order."""

    rates: list[float] = field(default_factory=list)  # of every batch
    drawn: list[int] = field(default_factory=list)  # how many units were in them
    gumbels: list[float] = field(default_factory=list)
    draws: list[tuple[tuple[int, ...], float]] = field(default_factory=list)  # shape, and the real deviation
    most: int = 0  # statements of a unit that private steps can meet

    def of(self, dimensions: int) -> list[float]:
        """Deviations of the draws with so many dimensions, one number each left out."""
        return [scale for shape, scale in self.draws if len(shape) == dimensions and shape != (1,)]

    @property
    def singles(self) -> list[float]:
        """Deviations of single numbers."""
        return [scale for shape, scale in self.draws if shape == (1,)]


@contextmanager
def transcribed(constant: float) -> Iterator[Transcript]:
    """Write down what is drawn inside; noise is ``constant`` times its deviation, but for single numbers, which get none."""
    seen, patch = Transcript(), pytest.MonkeyPatch()
    drawn, begun = measure.Gauss.draw, batches.PrivateBatches.__init__

    def normal(self: gauss.FreshNoise, *shape: int) -> np.ndarray:
        return np.full(shape, 0.0 if shape == (1,) else constant)

    def draw(self: measure.Gauss, *shape: int) -> np.ndarray:
        found = drawn(self, *shape)
        scale = (
            float(found.flat[0]) / constant if found.size and constant and shape != (1,) else self.deviation
        )
        seen.draws.append((shape, scale))
        return found

    def begin(self: batches.PrivateBatches, *given: Any, **more: Any) -> None:
        begun(self, *given, **more)
        if len(self.unit_of):
            seen.most = max(seen.most, int(np.unique(self.unit_of, return_counts=True)[1].max()))

    coins = Coins(seen)
    patch.setattr(gauss.FreshNoise, "normal", normal)
    patch.setattr(gauss.FreshNoise, "coins", lambda self: coins)
    patch.setattr(measure.Gauss, "draw", draw)
    patch.setattr(batches.PrivateBatches, "__init__", begin)
    try:
        yield seen
    finally:
        patch.undo()
