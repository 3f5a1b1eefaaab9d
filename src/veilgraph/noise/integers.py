"""Exact randomness for what is counted: coins that answer, and whole-number noise, from uniform integers alone.

No logarithm and no sum of doubles takes part, so no outcome is impossible that should only be rare, and none has a last bit that tells
(Canonne, Kamath & Steinke 2020, arXiv 2004.00010). Probabilities are fractions; where ε is none, noise is rounded up.
"""

from __future__ import annotations

import math

import numpy as np

CHUNK = 1 << 22  # coins at a time
FINE = 1 << 20  # ε of geometric noise is a multiple of one over this, rounded down


def lies(cells: int, epsilon: float, coins: np.random.Generator) -> np.ndarray:
    """Which of so many answers are turned round, each by its own coin: with probability 1 / (1 + e^ε), rounded up to a multiple of 2⁻⁶⁴.

    >>> len(lies(1000, 50.0, np.random.default_rng(0)))
    0
    """
    limit = np.uint64(min(math.ceil(2.0**64 / (1 + math.exp(min(epsilon, 700)))), 2**63))
    found = [
        start + np.flatnonzero(coins.integers(0, 2**64, min(CHUNK, cells - start), np.uint64) < limit)
        for start in range(0, cells, CHUNK)
    ]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def two_sided(count: int, epsilon: float, coins: np.random.Generator) -> np.ndarray:
    """Whole numbers X with P(X = x) ∝ e^(−ε·|x|): what hides a count that one unit changes by one.

    Each is made as the paper's Algorithm 2 makes it, for ε = n/2²⁰: a uniform u below 2²⁰ is kept with probability e^(−u/2²⁰), v counts how
    often a coin of e^(−1) comes up, and (u + 2²⁰·v) // n gets a sign; a negative zero begins again.
    """
    steps = math.floor(epsilon * FINE)
    if steps < 1:
        raise ValueError(f"ε {epsilon:g} for a count is less than this noise can be made for")
    out, missing = np.empty(count, np.int64), np.arange(count)
    while len(missing):
        part = coins.integers(0, FINE, len(missing))
        kept = _decays(part, coins)
        place, part = missing[kept], part[kept]
        size = (part + FINE * _how_often(len(part), coins)) // steps
        negative = coins.integers(0, 2, len(size)).astype(bool)
        good = ~(negative & (size == 0))
        out[place[good]] = np.where(negative, -size, size)[good]
        missing = np.concatenate([missing[~kept], place[~good]])
    return out


def _decays(parts: np.ndarray, coins: np.random.Generator) -> np.ndarray:
    """Coins of e^(−part/2²⁰), for parts from 0 to 2²⁰: the number of runs of a Bernoulli(γ/1), (γ/2), … until one fails is odd."""
    odd, running = np.ones(len(parts), bool), np.arange(len(parts))
    number = 1
    while len(running):
        on = coins.integers(0, FINE * number, len(running)) < parts[running]
        running = running[on]
        odd[running] = ~odd[running]
        number += 1
    return odd


def _how_often(count: int, coins: np.random.Generator) -> np.ndarray:
    """How often a coin of e^(−1) comes up before it does not."""
    found, running = np.zeros(count, np.int64), np.arange(count)
    while len(running):
        running = running[_decays(np.full(len(running), FINE), coins)]
        found[running] += 1
    return found
