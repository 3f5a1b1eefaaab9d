"""ε: golden values, closed forms, and bounds that must order themselves."""

from __future__ import annotations

import math

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from veilgraph.account import calibrate, spent
from veilgraph.account.calibrate import steps_left
from veilgraph.account.ceiling import ceiling
from veilgraph.account.epsilon import merge
from veilgraph.account.events import (
    Event,
    failure,
    gaussian,
    is_pure,
    non_private,
    pure,
    repeated,
    sampled,
    selected,
    to_accounting,
    together,
    zcdp,
)
from veilgraph.errors import BudgetError, VerificationError


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-8])
def test_one_gaussian_has_its_closed_form(sigma: float, delta: float) -> None:
    found = spent([gaussian(sigma)], delta)
    exact = dp.get_epsilon_gaussian(sigma, delta)
    assert exact <= found.epsilon <= exact + 2e-3
    assert found.pld is not None
    assert found.pld <= found.rdp
    assert found.method == "PLD"


# FB15k as DPKGE trains it: N statements, half or all of them confidential, batches of √N, 100 epochs, δ = 1/N.
FB15K = 483_142
DPKGE = [  # share, σ, published ε
    (0.5, 0.7, 8.79),
    (0.5, 1.0, 3.92),
    (0.5, 1.3, 2.60),
    (0.5, 10.0, 0.30),
    (1.0, 0.7, 6.02),
    (1.0, 1.0, 2.70),
    (1.0, 1.3, 1.81),
    (1.0, 10.0, 0.25),
]


@pytest.mark.parametrize(("share", "sigma", "published"), DPKGE)
def test_golden_epsilon_of_dpkge(share: float, sigma: float, published: float) -> None:
    """From its settings, with integer orders and the conversion of 2017; ours is tighter by PLD."""
    count = share * FB15K
    rate, steps, delta = math.sqrt(FB15K) / count, round(100 * count / math.sqrt(FB15K)), 1 / FB15K
    orders = list(range(2, 65))
    accountant = RdpAccountant(orders)
    accountant.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), steps)
    by_paper = min(
        rdp + math.log(1 / delta) / (order - 1) for order, rdp in zip(orders, accountant._rdp, strict=True)
    )
    assert by_paper == pytest.approx(published, rel=0.03)
    ours = spent([repeated(steps, sampled(rate, gaussian(sigma)))], delta)
    assert ours.epsilon < by_paper


def test_thesis_epsilon_column() -> None:
    """Full-batch Gaussian steps, T = 200, δ = 1e-5: composition of Gaussians is a Gaussian with σ/√T."""
    for sigma in (5.0, 10.0, 50.0):
        found = spent([repeated(200, gaussian(sigma))], 1e-5).epsilon
        assert found == pytest.approx(dp.get_epsilon_gaussian(sigma / math.sqrt(200), 1e-5), rel=0.01)


def test_anything_non_private_is_infinite() -> None:
    events = [gaussian(100.0), repeated(3, non_private("as published"))]
    assert spent(events, 1e-5).epsilon == math.inf
    assert spent([repeated(0, gaussian(1.0))], 1e-5).epsilon == 0
    assert spent([], 1e-5).epsilon == 0


def test_failures_are_taken_from_delta() -> None:
    step = together(gaussian(10.0), zcdp(0.001), failure(1e-9))
    few, many = spent([repeated(10, step)], 1e-5), spent([repeated(9_000, step)], 1e-5)
    assert few.epsilon < many.epsilon < math.inf
    assert few.pld is None
    assert spent([repeated(10_001, step)], 1e-5).epsilon == math.inf


def test_sampling_helps_and_composition_costs() -> None:
    full, part = spent([gaussian(1.0)], 1e-5), spent([sampled(0.1, gaussian(1.0))], 1e-5)
    assert part.epsilon < full.epsilon < spent([repeated(2, gaussian(1.0))], 1e-5).epsilon
    assert sampled(1.0, gaussian(2.0)) == gaussian(2.0)


def test_merging_changes_nothing() -> None:
    step = sampled(0.01, gaussian(1.1))
    blocks = [repeated(30, step), step, repeated(2, repeated(10, step)), gaussian(100)]
    assert spent(blocks, 1e-6) == spent([gaussian(100), repeated(51, step)], 1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_calibration_keeps_the_budget_and_wastes_little(epsilon: float) -> None:
    def events(sigma: float) -> list[dict[str, object]]:
        return [gaussian(100.0), repeated(100, sampled(0.05, gaussian(sigma)))]

    sigma = calibrate(events, epsilon, 1e-6)
    assert 0.98 * epsilon <= spent(events(sigma), 1e-6).epsilon <= epsilon
    with pytest.raises(BudgetError, match="cannot be kept"):
        calibrate(lambda s: [gaussian(1.0), gaussian(s)], 0.1, 1e-6)


def test_steps_left_never_exceeds() -> None:
    step = sampled(0.05, gaussian(1.0))
    count = steps_left([gaussian(100.0)], step, 6.0, 1e-6, 1_000)
    assert spent([gaussian(100.0), repeated(count, step)], 1e-6).epsilon <= 6.0
    assert spent([gaussian(100.0), repeated(count + count // 50, step)], 1e-6).epsilon > 6.0
    assert steps_left([gaussian(0.5)], step, 2.0, 1e-6, 100) == 0
    assert count > 100


@pytest.mark.parametrize(
    "event",
    [
        {"event": "gaussian", "noise_multiplier": -1},
        {"event": "gaussian"},
        {"event": "sampled", "rate": 2, "of": {"event": "gaussian", "noise_multiplier": 1}},
        {"event": "repeated", "times": -3, "of": {"event": "gaussian", "noise_multiplier": 1}},
        {"event": "free lunch"},
        {"event": "gaussian", "noise_multiplier": math.inf},
    ],
)
def test_events_that_make_no_sense_are_refused(event: dict[str, object]) -> None:
    with pytest.raises(VerificationError):
        to_accounting(event)


def test_only_what_has_no_delta_is_promised_without_one() -> None:
    assert spent([pure(1.5), repeated(3, pure(0.5)), together(pure(0.25))], 0.0).epsilon == pytest.approx(
        3.25
    )
    assert spent([pure(1.5)], 0.0).method == "sum"
    assert spent([pure(1.5), gaussian(100.0)], 0.0).epsilon == math.inf
    assert spent([sampled(0.1, pure(1.0))], 0.0).epsilon == math.inf
    assert not is_pure(gaussian(1.0))
    assert not is_pure(together(pure(1.0), gaussian(1.0)))


@pytest.mark.parametrize("times", [1, 5, 40])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_answers_compose_as_randomised_response_does(epsilon: float, times: int) -> None:
    """The exact δ of so many answers, summed over how many of them lie; the claim is just above it, and never above adding up."""
    delta = 1e-6
    found = spent([repeated(times, pure(epsilon))], delta)
    chance = math.exp(epsilon) / (1 + math.exp(epsilon))

    def exact(at: float) -> float:
        return sum(
            math.comb(times, k)
            * max(
                0.0,
                chance**k * (1 - chance) ** (times - k)
                - math.exp(at) * chance ** (times - k) * (1 - chance) ** k,
            )
            for k in range(times + 1)
        )

    assert exact(found.epsilon) <= delta * 1.001
    assert found.epsilon <= times * epsilon + 1e-9
    assert exact(found.epsilon - 5e-3) > delta
    assert found.rdp >= found.epsilon


def test_pure_and_gaussian_releases_add_up_by_the_least_bound() -> None:
    both = spent([pure(2.0), gaussian(5.0)], 1e-6)
    assert both.epsilon <= 2.0 + spent([gaussian(5.0)], 1e-6).epsilon + 1e-9
    assert both.epsilon > 2.0


def test_what_would_take_hours_is_claimed_by_divergence() -> None:
    """A line on a ledger from elsewhere kept whoever verified it busy for ever."""
    endless = spent([repeated(10**9, sampled(1e-9, gaussian(1.0)))], 1e-6)
    assert (endless.method, endless.pld) == ("RDP", None)
    assert endless.epsilon == endless.rdp < 1
    assert ceiling([repeated(10**9, sampled(1e-9, gaussian(1.0)))], 1e-6).mu is None
    wide = spent([sampled(1e-30, gaussian(0.003))], 1e-6)
    assert wide.pld is None


def test_more_than_any_training_charges_is_refused() -> None:
    kinds = [sampled(0.1, gaussian(1 + number / 1000)) for number in range(500)]
    for events in (kinds, [together(*kinds)], [selected(3, together(*kinds))]):
        with pytest.raises(VerificationError, match="500 releases that all differ"):
            spent(events, 1e-6)
    with pytest.raises(VerificationError, match=r"1e\+12 is the most"):
        to_accounting(repeated(10**13, gaussian(1e9)))
    with pytest.raises(VerificationError, match="times, and nothing is done more"):
        spent([repeated(10**9, repeated(10**9, gaussian(1e9)))], 1e-6)


@pytest.mark.parametrize(
    "events",
    [
        [gaussian(100.0), repeated(20_000, sampled(0.02, gaussian(1.1)))],
        [repeated(300_000, sampled(0.01, gaussian(3.0)))],
        [repeated(100_000, sampled(1e-5, gaussian(0.8)))],
        [repeated(100, sampled(0.05, gaussian(0.7 + stage / 10))) for stage in range(8)],
        [pure(0.5), repeated(40, pure(0.01)), gaussian(4.0)],
    ],
)
def test_what_trainings_charge_is_accounted_for_as_ever(events: list[Event]) -> None:
    """The same ε as by the accountant alone."""
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp.ComposedDpEvent([to_accounting(one) for one in merge(events)]))
    assert spent(events, 1e-6).pld == float(accountant.get_epsilon(1e-6))
