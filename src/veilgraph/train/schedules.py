"""How the step size changes over a training."""

from __future__ import annotations

import math

FLOOR = 0.05  # linear and cosine end here


def factor(schedule: str, done: float) -> float:
    """What the learning rate is multiplied with when a share ``done`` (0 to 1) of the training is over."""
    if schedule == "linear":
        return max(FLOOR, 1 - done)
    if schedule == "cosine":
        return FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * min(done, 1))) / 2
    return 1.0
