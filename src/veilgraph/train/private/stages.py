"""Noise that falls: private steps in stages, each with less noise than the one before.

The schedule follows from the number of steps and ``noise_decay`` alone, so it costs nothing by itself: every stage is charged
with its own noise. Choosing the decay by looking at confidential statements would cost something: rehearse it on
unrestricted ones (``veil plan``), which is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from veilgraph.config import TrainConfig

STAGES = 8


@dataclass(frozen=True)
class Stages:
    """``steps`` steps; the noise of the last stage is ``decay`` times that of the first.

    >>> list(Stages(10, 1.0).parts(0, 10))
    [(10, 1.0)]
    """

    steps: int
    decay: float

    @classmethod
    def of(cls, config: TrainConfig) -> Stages:
        """Of a configuration."""
        return cls(config.private_steps or 0, 1.0 if config.noise_decay is None else config.noise_decay)

    @property
    def count(self) -> int:
        """How many stages there are."""
        return 1 if self.decay == 1 else max(1, min(STAGES, self.steps))

    def _stage(self, number: int) -> int:
        return min(self.count - 1, number * self.count // max(self.steps, 1))

    def factor(self, number: int) -> float:
        """Of the noise of a step, by its place in the schedule."""
        share = self._stage(number) / max(self.count - 1, 1)
        return round(self.decay**share, 6)  # the same on every machine

    def parts(self, first: int, last: int) -> Iterator[tuple[int, float]]:
        """How many of the steps from ``first`` to before ``last`` are in each stage, and the stage's factor."""
        while first < last:
            stage = self._stage(first)
            end = last if stage == self.count - 1 else min(last, -(-(stage + 1) * self.steps // self.count))
            yield end - first, self.factor(first)
            first = end
