"""When private steps are taken: spread evenly, by what is public alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """So many steps over so many epochs."""

    steps: int
    epochs: int

    def before(self, epoch: int) -> int:
        """How many are due before an epoch."""
        return self.steps * epoch // self.epochs

    def between(self, done: int, of: int, epoch: int) -> range:
        """Those due in the ``done``-th of ``of`` stretches of an epoch.

        >>> [list(Schedule(5, 1).between(done, 2, 0)) for done in (0, 1)]
        [[0, 1], [2, 3, 4]]
        """
        edges = [self.steps * (epoch * of + step) // (self.epochs * of) for step in (done, done + 1)]
        return range(*edges)
