"""What no attacker exceeds: closed forms where there are some, and an attacker who reaches the bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from veilgraph.account.ceiling import accuracy_of, ceiling, gaussian_delta
from veilgraph.account.epsilon import spent
from veilgraph.account.events import failure, gaussian, non_private, repeated, sampled, selected, zcdp


@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
def test_of_gaussians_mu_and_accuracy_have_closed_forms(noise: float) -> None:
    found = ceiling([gaussian(noise)], 1e-6)
    assert found.mu == pytest.approx(1 / noise, rel=1e-3)
    assert found.attack_accuracy == pytest.approx(norm.cdf(0.5 / noise), abs=1e-4)
    four = ceiling([repeated(4, gaussian(noise))], 1e-6)
    assert four.mu == pytest.approx(2 / noise, rel=1e-3)


def test_the_best_attacker_reaches_the_bound_and_no_more() -> None:
    """200,000 guesses by the likelihood ratio of one sampled Gaussian: within 5 deviations of the bound."""
    rate, noise, tries = 0.3, 0.8, 200_000
    rng = np.random.default_rng(0)
    inside = rng.random(tries) < 0.5
    seen = (inside & (rng.random(tries) < rate)) + noise * rng.normal(size=tries)
    ratio = 1 - rate + rate * np.exp((2 * seen - 1) / (2 * noise**2))
    right = float(((ratio > 1) == inside).mean())
    bound = ceiling([sampled(rate, gaussian(noise))], 1e-6).attack_accuracy
    assert bound is not None
    assert abs(right - bound) < 5 * math.sqrt(0.25 / tries)


def test_mu_bounds_the_whole_profile() -> None:
    """At every δ above the run's, ε of the events is at most that of a Gaussian with this μ."""
    events = [gaussian(2.0), repeated(500, sampled(0.02, gaussian(1.1)))]
    found = ceiling(events, 1e-6)
    assert found.mu is not None
    for delta in (1e-2, 1e-4, 1e-5):
        epsilon = spent(events, delta).epsilon
        assert gaussian_delta(epsilon, found.mu) >= delta * (1 - 1e-2)


def test_without_a_distribution_accuracy_follows_from_epsilon() -> None:
    for events in ([zcdp(0.1)], [selected(3, gaussian(5.0))]):
        found, epsilon = ceiling(events, 1e-6), spent(events, 1e-6).epsilon
        assert found.mu is None
        assert found.attack_accuracy == accuracy_of(epsilon, 1e-6)
    assert accuracy_of(math.log(3), 0.0) == pytest.approx(0.75)


def test_what_fails_or_promises_nothing_is_not_hidden() -> None:
    assert ceiling([], 1e-6) == (0.5, 0.0)
    assert ceiling([gaussian(1.0), non_private("x")], 1e-6) == (None, None)
    safe = ceiling([gaussian(1.0)], 1e-3).attack_accuracy
    less = ceiling([gaussian(1.0), failure(5e-4)], 1e-3).attack_accuracy
    assert safe is not None
    assert less is not None
    assert less - safe == pytest.approx(2.5e-4, abs=1e-5)
