"""How large ε must be, given how well somebody guessed (Steinke, Nasr & Jagielski 2023, arXiv 2305.08846).

m units are in or out by fair coins; an attacker guesses r of them and is right v times. Under (ε, δ)-differential
privacy v is at most about Binomial(r, e^ε/(1 + e^ε)); the probability of so many hits or more, with what δ may add, is a
p-value. The lower bound is the largest ε whose p-value is small. Trying several scores and several r is paid for by
dividing the error probability among all tries (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

SHARES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the canaries, guessed from both ends of the score


@dataclass(frozen=True)
class Guesses:
    """The best try: which score, how many guesses, how many right."""

    epsilon: float
    score: str
    guesses: int
    correct: int


def p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """The probability of so many right guesses or more, at most, if training is (ε, δ)-private."""
    from scipy.stats import binom

    chance = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, chance))
    lower = np.cumsum(binom.pmf(correct - np.arange(1, correct + 1), guesses, chance))
    alpha = float((lower / np.arange(1, correct + 1)).max(initial=0.0))
    return min(1.0, beta + 2 * canaries * delta * alpha)


def lower_bound(canaries: int, guesses: int, correct: int, delta: float, error: float) -> float:
    """The largest ε that is refuted with this error probability; 0 if none is."""
    if not guesses or p_value(canaries, guesses, correct, 0.0, delta) > error:
        return 0.0
    low, high = 0.0, 1.0
    while p_value(canaries, guesses, correct, high, delta) <= error and high < 50:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if p_value(canaries, guesses, correct, middle, delta) <= error else (low, middle)
        )
    return low


def power(canaries: int, scores: int, delta: float, error: float = 0.05) -> float:
    """The largest ε that could be refuted: if every guess were right, for the best of the shares."""
    each = error / (scores * len(SHARES))
    sides = (max(1, int(canaries * share / 2)) for share in SHARES)
    return max(lower_bound(canaries, 2 * side, 2 * side, delta, each) for side in sides)


def best_guess(
    scores: dict[str, np.ndarray], included: np.ndarray, delta: float, error: float = 0.05
) -> Guesses:
    """Guess «in» for the highest scores and «out» for the lowest, in every way of ``SHARES``; the best bound, corrected."""
    count = len(included)
    each = error / (len(scores) * len(SHARES))
    best = Guesses(0.0, "none", 0, 0)
    for name, score in scores.items():
        order = np.argsort(score + 0.0, kind="stable")
        for share in SHARES:
            side = max(1, int(count * share / 2))
            low, high = order[:side], order[-side:]
            correct = int((~included[low]).sum() + included[high].sum())
            found = lower_bound(count, 2 * side, correct, delta, each)
            if found > best.epsilon:
                best = Guesses(found, name, 2 * side, correct)
    return best
