"""What an attacker can reach at most, from the events alone: how often right, and the μ of Gaussian differential privacy.

``attack_accuracy``   whoever must tell, of two graphs as likely as each other, which one was trained on (one unit apart) is right
                      with at most this probability. It is (1 + δ(0)) / 2, with δ(0) the total variation between the two outcomes:
                      exact for a mechanism whose worst pair is known, an upper bound otherwise.
``mu``                the smallest μ such that no attacker is better off than one who must tell N(0, 1) from N(μ, 1), as far
                      as advantages down to δ go (Dong, Roth & Su 2022, arXiv 1905.02383; Gómez et al. 2025, arXiv 2503.10945).

Example: one Gaussian release with noise multiplier 1 has μ = 1, and an attacker is right with Φ(1/2) = 69.1 % at most.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from veilgraph.account.epsilon import COARSE, losses, merge, spent
from veilgraph.account.events import Event, failures, is_private

POINTS = 60  # of the privacy profile that are compared with a Gaussian's
LARGEST = 200.0  # μ: beyond this nothing is promised


class Ceiling(NamedTuple):
    """What no attacker exceeds; None where nothing is known."""

    attack_accuracy: float | None
    mu: float | None


def ceiling(events: Iterable[Event], delta: float) -> Ceiling:
    """Of these events together; ``delta`` is the smallest advantage that μ speaks of.

    Where the events allow no privacy-loss distribution, accuracy follows from ε and δ, and μ is not told.
    """
    merged = merge(events)
    if not merged:
        return Ceiling(0.5, 0.0)
    if not all(is_private(event) for event in merged):
        return Ceiling(None, None)
    failed = sum(failures(event) for event in merged)
    profile = _profile(json.dumps(merged), delta)
    if profile is None or failed >= delta:
        return Ceiling(accuracy_of(spent(merged, delta).epsilon, delta), None)
    points = [(at, min(1.0, chance + failed)) for at, chance in zip(*profile)]
    mu = max((_mu_at(at, chance) for at, chance in points if chance >= delta), default=0.0)
    return Ceiling((1 + points[0][1]) / 2, mu if mu < LARGEST else None)


def accuracy_of(epsilon: float, delta: float) -> float | None:
    """How often right at most, by ε and δ alone; None where ε is infinite.

    >>> round(accuracy_of(math.log(3), 0.0), 2)
    0.75
    """
    if not math.isfinite(epsilon):
        return None
    return 1 - (1 - delta) / (1 + math.exp(min(epsilon, 700)))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ of Gaussian differential privacy at ε (Dong, Roth & Su 2022, Corollary 2.13)."""
    from scipy.stats import norm

    if mu <= 0:
        return 0.0
    tail = epsilon + float(norm.logcdf(-epsilon / mu - mu / 2))
    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(tail))


def _mu_at(epsilon: float, delta: float) -> float:
    """The μ whose profile passes through this point, from above."""
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, high) < delta and high < LARGEST:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) < delta else (low, middle)
    return high


@lru_cache(maxsize=256)
def _profile(document: str, delta: float) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """δ at ε from 0 to where it falls below ``delta``; None where no privacy-loss distribution is to be had."""
    last = spent(json.loads(document), delta).epsilon
    if not math.isfinite(last) or last > LARGEST:
        return None
    accountant = losses(document, COARSE)
    if accountant is None:
        return None
    epsilons = tuple(float(e) for e in np.linspace(0, last, POINTS))
    return epsilons, tuple(float(accountant.get_delta(e)) for e in epsilons)
