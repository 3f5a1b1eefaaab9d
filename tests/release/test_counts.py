"""Counts of large tables: what passes a threshold, and how often."""

from __future__ import annotations

import numpy as np
import pytest

from tests.privacy.meters import OpenMeter
from veilgraph.account.prices import Tallies
from veilgraph.noise.gauss import source
from veilgraph.noise.measure import grid, rounded
from veilgraph.release import counts as marginals


@pytest.mark.parametrize("deviation", [0.3, 7.15, 143.0])
def test_a_threshold_lies_between_two_numbers(deviation: float) -> None:
    """Half a step from both: what passes before rounding is what passes after it, so that both kinds of cells have the same odds."""
    threshold, step = marginals._between(4.2 * deviation, deviation), grid(deviation)
    assert abs(threshold - 4.2 * deviation) <= step
    near = threshold + step * np.array([-0.49, -0.01, 0.01, 0.49])
    np.testing.assert_array_equal(rounded(near, deviation) > threshold, near > threshold)


def test_whole_numbers_of_a_large_table_have_the_law_of_drawing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which cells pass, and with which numbers: two χ² tests that fail by chance once in a million."""
    monkeypatch.setattr(marginals, "LARGE_CHANCE", 0.05)
    secret, none = np.array([[0, 0, 1]]), np.empty((0, 3), np.int64)
    tallies, meter = Tallies(2, 2.0), OpenMeter(source())
    values: list[float] = []
    for _ in range(300):
        prior = marginals._exceeding_whole(secret, none, 1, 200, tallies, meter)
        values += np.rint(np.sinh(prior.values.numpy())).tolist()  # type: ignore[union-attr]
    kept = np.exp(-tallies.each)
    least = int(min(values))
    assert kept**least / (1 + kept) <= 0.05 < kept ** (least - 1) / (1 + kept)
    numbers = np.arange(least, least + 4)
    expected = 300 * 398 * (1 - kept) / (1 + kept) * kept**numbers  # (two of 400 cells have a statement)
    found = np.array([np.sum(np.array(values) == number) for number in numbers])
    assert (np.abs(found - expected) < 6 * np.sqrt(expected) + 300 * 2 * 0.2).all()
