"""Events: what one release cost, as plain data that can be written down and read back without loss.

    {"event": "gaussian", "noise_multiplier": 1.1}
    {"event": "sampled", "rate": 0.01, "of": …}          each unit is in by an independent coin
    {"event": "repeated", "times": 300, "of": …}
    {"event": "together", "all": […]}                    several releases of one step
    {"event": "selected", "mean": 10, "of": …}           the best of a random number of such releases, the others forgotten
    {"event": "pure", "epsilon": 0.5}                    an answer, or a count, with ε and no δ
    {"event": "zcdp", "rho": 0.02}                       a release with Rényi divergence ρ·α at every order α
    {"event": "failure", "delta": 1e-9}                  a release that protects nothing with this probability
    {"event": "nothing"}                                 nothing confidential was read
    {"event": "non-private", "reason": "…"}              ε is infinite

All of them are about adding or removing one unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from veilgraph.errors import VerificationError

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Event = Mapping[str, Any]
LOGARITHMIC = (
    0.0  # shape of the number of releases one is selected from: of all shapes it costs least, and is never 0
)

MOST_TIMES = 10**12  # of one release: far more than any training takes steps
LEAST = 1e-30  # of a number in an event, and one over it the most: their squares can be computed with


def gaussian(noise_multiplier: float) -> Event:
    """One Gaussian release: noise of so many times the sensitivity."""
    return {"event": "gaussian", "noise_multiplier": float(noise_multiplier)}


def sampled(rate: float, of: Event) -> Event:
    """A release that reads each unit with this probability."""
    return of if rate >= 1 else {"event": "sampled", "rate": float(rate), "of": of}


def repeated(times: int, of: Event) -> Event:
    """The same kind of release, several times."""
    return {"event": "repeated", "times": int(times), "of": of}


def together(*events: Event) -> Event:
    """Several releases of one step."""
    return {"event": "together", "all": list(events)}


def selected(mean: float, of: Event) -> Event:
    """The best of K independent releases, by a score that is one of their results; K is drawn from the logarithmic
    distribution with this mean, and neither K nor the other releases are told (Papernot & Steinke 2022, Theorem 2)."""
    return {"event": "selected", "mean": float(mean), "of": of}


def pure(epsilon: float) -> Event:
    """A release that changes the probability of no outcome by more than a factor of e^ε: randomised response, geometric noise."""
    return {"event": "pure", "epsilon": float(epsilon)}


def zcdp(rho: float) -> Event:
    """A release known by its concentrated divergence only."""
    return {"event": "zcdp", "rho": float(rho)}


def failure(delta: float) -> Event:
    """A release that may protect nothing, with this probability."""
    return {"event": "failure", "delta": float(delta)}


def nothing() -> Event:
    """No release."""
    return {"event": "nothing"}


def non_private(reason: str) -> Event:
    """A release without any guarantee."""
    return {"event": "non-private", "reason": reason}


def inside(event: Event) -> list[Event]:
    """The events an event is made of."""
    return list(event.get("all", [])) + ([event["of"]] if "of" in event else [])


def is_private(event: Event) -> bool:
    """Whether an event has a finite ε."""
    return event["event"] != "non-private" and all(is_private(part) for part in inside(event))


def is_pure(event: Event) -> bool:
    """Whether an event has an ε without any δ."""
    if event["event"] in ("pure", "nothing"):
        return True
    return event["event"] in ("repeated", "together") and all(map(is_pure, inside(event)))


def failures(event: Event) -> float:
    """The probability that the event protects nothing (at most)."""
    if event["event"] == "failure":
        return float(event["delta"])
    once = sum(failures(part) for part in inside(event))
    return once * int(event["times"]) if event["event"] == "repeated" else once


def to_accounting(event: Event) -> DpEvent:
    """The event in the words of dp-accounting."""
    import dp_accounting as dp
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent, RepeatAndSelectDpEvent

    try:
        kind = event["event"]
        if kind == "gaussian":
            return dp.GaussianDpEvent(_positive(event["noise_multiplier"]))
        if kind == "sampled":
            rate = float(event["rate"])
            if not 0 <= rate <= 1:
                raise ValueError(f"rate {rate}")
            return dp.PoissonSampledDpEvent(rate, to_accounting(event["of"]))
        if kind == "repeated":
            times = event["times"]
            if not isinstance(times, int) or isinstance(times, bool) or not 0 <= times <= MOST_TIMES:
                raise ValueError(
                    f"it is said to be done {str(times)[:40]} times, {MOST_TIMES:.0e} is the most"
                )
            return dp.SelfComposedDpEvent(to_accounting(event["of"]), times)
        if kind == "together":
            return dp.ComposedDpEvent([to_accounting(part) for part in event["all"]])
        if kind == "selected":
            mean = _positive(event["mean"])
            if mean < 1 or failures(event["of"]):
                raise ValueError("selection is from one or more releases, none of which may protect nothing")
            return RepeatAndSelectDpEvent(to_accounting(event["of"]), mean=mean, shape=LOGARITHMIC)
        if (
            kind == "pure"
        ):  # (geometric noise on a count that changes by 1 loses ±ε, as answers do: the worst)
            return DiscreteLaplaceDpEvent(_positive(event["epsilon"]), 1)
        if kind == "zcdp":
            return dp.ZCDpEvent(_positive(event["rho"]))
        if kind in ("failure", "nothing"):
            _positive(event.get("delta", 1.0 if kind == "nothing" else 0.0))
            return dp.NoOpDpEvent()
        if kind == "non-private":
            return dp.NonPrivateDpEvent()
    except (KeyError, TypeError, ValueError) as error:
        raise VerificationError(
            f"the ledger holds an event that makes no sense: {dict(event)} ({error})"
        ) from None
    raise VerificationError(f"the ledger holds an event of an unknown kind: {dict(event)}")


def _positive(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]
    if not LEAST <= number <= 1 / LEAST:
        raise ValueError(f"{value!r} must be a positive number that can be computed with")
    return number
