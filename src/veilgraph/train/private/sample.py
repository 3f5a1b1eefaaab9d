"""Private batches: every unit is in by its own coin (Poisson sampling). Never shuffled and sliced, never truncated."""

from __future__ import annotations

import numpy as np


class PoissonSampler:
    """Draws units at a fixed rate; a batch may be empty, or all of them.

    The number of units drawn is Binomial(units, rate) and, given the number, the units are a uniform subset: exactly
    independent coins, at the price of the batch instead of one coin per unit.
    """

    def __init__(self, unit_of: np.ndarray, rate: float) -> None:
        self.rate = min(max(rate, 0.0), 1.0)
        self.order = np.argsort(unit_of, kind="stable")
        self.start = (
            np.flatnonzero(np.r_[True, np.diff(unit_of[self.order]) != 0, True])
            if len(unit_of)
            else np.zeros(1, int)
        )

    def __len__(self) -> int:
        return len(self.start) - 1

    def draw(self, coins: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The statements of the drawn units, unit by unit, and the number (0, 1, …) of each one's unit."""
        units = len(self)
        count = int(coins.binomial(units, self.rate)) if units else 0
        chosen = (
            np.arange(units) if count == units else coins.choice(units, count, replace=False, shuffle=False)
        )
        if len(self.order) == units:  # one statement each
            return self.order.take(chosen), np.arange(count)
        lengths = self.start[chosen + 1] - self.start[chosen]
        owner = np.repeat(np.arange(len(chosen)), lengths)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self.order[self.start[chosen][owner] + place], owner


def pieces(owner: np.ndarray, most: int) -> list[slice]:
    """Stretches of at most ``most`` statements (more only if one unit has more) that never cut a unit."""
    if len(owner) <= most:
        return [slice(0, len(owner))] if len(owner) else []
    ends = np.flatnonzero(np.r_[np.diff(owner) != 0, True]) + 1
    out, start = [], 0
    while start < len(owner):
        fits = ends[(ends > start) & (ends <= start + most)]
        end = int(fits[-1]) if len(fits) else int(ends[np.searchsorted(ends, start, "right")])
        out.append(slice(start, end))
        start = end
    return out
