"""From (ε, δ) to the noise, and from the noise to the number of steps that still fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from veilgraph.account.epsilon import COARSE, FINE, spent
from veilgraph.account.events import Event, repeated
from veilgraph.errors import BudgetError

SMALLEST, LARGEST = 0.05, 1e7


def calibrate(
    events_of: Callable[[float], Sequence[Event]], epsilon: float, delta: float, *, tolerance: float = 1e-3
) -> float:
    """The smallest noise multiplier (to ``tolerance``, from above) whose events cost at most ε at δ.

    ``events_of`` gives everything the training will spend, fixed costs included.
    """

    def fits(noise: float) -> bool:
        return spent(events_of(noise), delta, grid=COARSE).epsilon <= epsilon

    high = 1.0
    while not fits(high):
        high *= 2
        if high > LARGEST:
            raise BudgetError(
                f"ε = {epsilon:g} at δ = {delta:g} cannot be kept with any noise: fixed costs (noisy counts) alone exceed "
                "it. Raise --epsilon or --delta."
            )
    low = high / 2
    while low > SMALLEST and fits(low):
        high, low = low, low / 2
    while high / low > 1 + tolerance:
        middle = math.sqrt(high * low)
        high, low = (middle, low) if fits(middle) else (high, middle)
    return high


def steps_left(already: Sequence[Event], step: Event, epsilon: float, delta: float, most: int) -> int:
    """How many more of these steps stay within ε, at most ``most``."""

    def fits(count: int, grid: float) -> bool:
        return spent([*already, repeated(count, step)], delta, grid=grid).epsilon <= epsilon

    if fits(most, FINE):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle, COARSE) else (low, middle)
    return low
