"""Private batches: every unit is in by its own coin (Poisson sampling). Never shuffled and sliced, never truncated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veilgraph.errors import PrivacyError


class Token:
    """At which rate a batch was drawn: the price of what is released of it follows from it, once."""

    __slots__ = ("rate", "spent")

    def __init__(self, rate: float) -> None:
        self.rate, self.spent = rate, False

    def spend(self) -> None:
        """Release something of the batch; refused a second time, because that would have to be paid for again."""
        if self.spent:
            raise PrivacyError(
                "a batch of confidential units was about to be released twice at the price of once. This is a mistake in the "
                "program, not in the settings: please report it."
            )
        self.spent = True


class Drawn(NamedTuple):
    """The statements of the drawn units, unit by unit, the number (0, 1, …) of each one's unit, and the rate."""

    chosen: np.ndarray
    owner: np.ndarray
    token: Token


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

    def draw(self, coins: np.random.Generator) -> Drawn:
        """A batch, and the token that says how it was drawn."""
        token = Token(self.rate)
        units = len(self)
        count = int(coins.binomial(units, self.rate)) if units else 0
        chosen = (
            np.arange(units) if count == units else coins.choice(units, count, replace=False, shuffle=False)
        )
        if len(self.order) == units:  # one statement each
            return Drawn(self.order.take(chosen), np.arange(count), token)
        lengths = self.start[chosen + 1] - self.start[chosen]
        owner = np.repeat(np.arange(len(chosen)), lengths)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Drawn(self.order[self.start[chosen][owner] + place], owner, token)


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
