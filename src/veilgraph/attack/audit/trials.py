"""How little noise there can be, from many releases of one mechanism with fresh coins.

In each release units are in or out by coins of their own, and a threshold on a score guesses who is in. Where telling one of them is as
hard as telling N(0, 1) from N(μ, 1), the share of those found (among those in) is at most Φ(Φ⁻¹(false alarms) + μ), for each of them
and, because that curve is concave, for their means. Releases are independent of each other, units of one release need not be: so the
means of each release are the observations, and their intervals are Student's, over releases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

FEWEST = 100  # releases
LOWEST = 1e-9
_NORMAL = NormalDist()


@dataclass
class Trials:
    """For each score and threshold the shares found and falsely found, release by release."""

    thresholds: Mapping[str, Sequence[float]]
    found: list[list[float]] = field(default_factory=list)
    alarms: list[list[float]] = field(default_factory=list)

    def add(self, scores: Mapping[str, np.ndarray], included: np.ndarray) -> None:
        """One release."""
        if included.all() or not included.any():
            return
        rows = [(scores[name] > at) for name, all_ in self.thresholds.items() for at in all_]
        self.found.append([float(row[included].mean()) for row in rows])
        self.alarms.append([float(row[~included].mean()) for row in rows])

    def lower_mu(self, error: float) -> float:
        """No mechanism of a smaller μ would be told so well, but by chance (``error``); 0 if nothing is refuted."""
        if len(self.found) < 2:
            return 0.0
        each = error / (2 * len(self.found[0]))
        found = _bound(np.array(self.found), each, -1.0)
        alarms = _bound(np.array(self.alarms), each, 1.0)
        return max(0.0, *(distance(high, low) for high, low in zip(found, alarms)))

    def most(self, error: float) -> float:
        """What would be refuted if every guess were right."""
        each = error / (2 * max(1, sum(len(all_) for all_ in self.thresholds.values())))
        missed = _none_of(max(len(self.found), 1), each)
        return max(0.0, distance(1 - missed, missed))


def distance(found: float, alarms: float) -> float:
    """The μ at which so many are found with so many false alarms."""
    inside = (min(max(share, LOWEST), 1 - LOWEST) for share in (found, alarms))
    high, low = inside
    return _NORMAL.inv_cdf(high) - _NORMAL.inv_cdf(low)


def _bound(shares: np.ndarray, error: float, sign: float) -> np.ndarray:
    """One-sided bounds of the means over releases; where no release differs from another, by the rule of none."""
    from scipy.stats import t

    count = len(shares)
    mean, spread = shares.mean(0), shares.std(0, ddof=1) / math.sqrt(count)
    least = _none_of(count, error) if sign > 0 else -_none_of(count, error)
    moved = np.where(spread > 0, sign * float(t.isf(error, count - 1)) * spread, least)
    return np.clip(mean + moved, 0.0, 1.0)


def _none_of(trials: int, error: float) -> float:
    """The largest chance of something that did not happen once in so many trials."""
    return float(1 - error ** (1 / trials))
