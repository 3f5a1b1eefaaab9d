"""Coins that answer, and whole-number noise: their laws, by counting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from veilgraph.account.prices import Tallies
from veilgraph.noise.integers import lies, two_sided

COINS = np.random.Generator(np.random.SFC64(11))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_answers_lie_as_often_as_they_should(epsilon: float) -> None:
    """Within what a binomial does in all but one of a million suites, in every third of the cells."""
    cells, chance = 900_000, 1 / (1 + math.exp(epsilon))
    found = lies(cells, epsilon, COINS)
    assert (np.diff(found) > 0).all()
    for third in range(3):
        count = int(((found >= third * cells // 3) & (found < (third + 1) * cells // 3)).sum())
        low, high = binom.interval(1 - 1e-7, cells // 3, chance)
        assert low <= count <= high


def test_no_answer_lies_less_often_than_is_charged() -> None:
    """The fraction a coin is compared with is rounded up, so that the odds never exceed e^ε; nothing overflows at either end."""
    for epsilon in (1e-9, 0.5, 20.0, 44.0, 60.0, 1e6):
        assert len(lies(1000, epsilon, COINS)) <= 1000
    assert len(lies(0, 1.0, COINS)) == 0
    chance = math.ceil(2.0**64 / (1 + math.exp(2.0))) / 2**64
    assert (1 - chance) / chance <= math.exp(2.0)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_whole_numbers_have_the_two_sided_geometric_law(epsilon: float) -> None:
    """χ² over the values that are expected at least 50 times: fails by chance once in a million."""
    drawn, kept = two_sided(400_000, epsilon, COINS), math.exp(-epsilon)
    reach = max(1, math.floor(math.log(50 / len(drawn) * (1 + kept) / (1 - kept)) / math.log(kept)))
    values = np.arange(-reach, reach + 1)
    expected = len(drawn) * (1 - kept) / (1 + kept) * kept ** np.abs(values)
    found = np.array([(drawn == value).sum() for value in values])
    rest = len(drawn) - expected.sum()
    found, expected = np.append(found, len(drawn) - found.sum()), np.append(expected, rest)
    assert chisquare(found, expected).pvalue > 1e-6


def test_the_variance_is_the_one_that_laws_are_compared_by() -> None:
    tallies = Tallies(2, 1.5)
    drawn = two_sided(400_000, tallies.each, COINS)
    assert drawn.var() == pytest.approx(tallies.variance, rel=0.03)
    assert drawn.mean() == pytest.approx(0, abs=0.03)


def test_too_small_an_epsilon_is_refused() -> None:
    with pytest.raises(ValueError, match="less than this noise"):
        two_sided(10, 1e-9, COINS)
    assert len(two_sided(0, 1.0, COINS)) == 0
