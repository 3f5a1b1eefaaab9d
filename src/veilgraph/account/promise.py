"""What a private training promises: every release it makes, in order, and what each costs.

A Promise is a value: settled privacy settings, and public facts about the graph. Settling (how much noise), paying, planning, tuning and
verifying read its one list of releases, so none of them can forget one.

    the number of units            one Gaussian, before anything else; a whole number with a share of ε where all else has no δ
    noisy counts                   several Gaussians, together as one of ``prior_noise``, or whole numbers with an ε of their own
    answers                        randomised response about the cells a statement may be in, with an ε for each
    a histogram of gradient norms  if the clip norm comes from the data, before the first step
    private steps                  in stages, each with its own noise
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from veilgraph import registry
from veilgraph.account.calibrate import calibrate
from veilgraph.account.epsilon import COARSE, DELTA, spent
from veilgraph.account.events import Event, gaussian, is_pure, non_private, pure, repeated, sampled, together
from veilgraph.account.ledger import Ledger
from veilgraph.account.prices import (
    COUNT_NOISE,
    Asked,
    Counting,
    Stages,
    StepTerms,
    Tallies,
    answered,
    histogram,
)
from veilgraph.errors import BudgetError

RELIABLE = math.log(9)  # ε above which an answer can be relied on in more than 90 of 100 cases
RESPOND = "respond"  # the mechanism that asks about cells
COUNTS_SHARE, COUNTS_AT_MOST = 0.25, 2.0  # of ε for counts, where only they suggest which cells to ask about
NUMBER_SHARE = 0.01  # of ε, for the number of units where nothing has a δ
PRIOR_SHARE = 0.7  # of the budget (in zero-concentrated terms) for the counts, where steps follow
NUMBER = Asked(1.0, COUNT_NOISE)  # how many units there are
SEEDED = "the noise was drawn from a given seed"
ONE_OF_SEVERAL = "one of several trainings, not to be shown"


def guarantee_of(mechanism: str) -> str:
    """dp, or why nothing is promised."""
    return "dp" if mechanism == RESPOND else str(registry.find("mechanisms", mechanism).guarantee)


class Release(NamedTuple):
    """One thing that is made public: what, and what it costs."""

    what: str
    event: Event


@dataclass(frozen=True)
class Promise:
    """Settled privacy settings and public facts; a noise that is not settled yet is None."""

    units: float  # how many there are: a noisy number
    per_unit: int
    entities: int
    relations: int
    epsilon: float | None = None
    delta: float = DELTA
    mechanism: str = "lazy"
    noise_multiplier: float | None = None
    noise_decay: float = 1.0
    sample_rate: float = 1.0
    steps: int = 0
    clip_from_data: bool = False
    counts: bool = False
    prior_noise: float | None = None
    shrink: bool = False
    seeded: bool = False
    prior_epsilon: float | None = None
    answer_epsilon: float | None = None
    accept_reached: bool = False

    @classmethod
    def of(cls, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> Promise:
        """From settings by their keys in config.yaml, and what config.yaml says of the graph."""
        return cls(
            max(float(facts["units"]), 1e-9),
            int(facts["per_unit"]),
            int(facts["entities"]),
            int(facts["relations"]),
            settings.get("epsilon"),
            DELTA if settings.get("delta") is None else float(settings["delta"]),
            settings.get("mechanism") or "lazy",
            settings.get("noise_multiplier"),
            1.0 if settings.get("noise_decay") is None else float(settings["noise_decay"]),
            settings.get("sample_rate") or 1.0,
            settings.get("private_steps") or 0,
            settings.get("clip_quantile") is not None,
            settings.get("prior") == "marginals",
            settings.get("prior_noise"),
            settings.get("shrinkage") == "rows",
            settings.get("insecure_noise_seed") is not None,
            settings.get("prior_epsilon"),
            settings.get("answer_epsilon"),
            bool(settings.get("accept_reached")),
        )

    @property
    def asks(self) -> bool:
        """Whether cells are asked about, instead of steps being taken."""
        return self.mechanism == RESPOND

    @property
    def pure(self) -> bool:
        """Whether nothing that is released has a δ: answers, and counts as whole numbers where their noise is less so."""
        if self.asks or self.delta == 0:
            return True
        if not self.counts or self.steps or self.prior_noise is not None:
            return False
        if self.prior_epsilon is not None:
            return True
        modest = self.accept_reached or (self.epsilon or 0.0) <= RELIABLE
        return modest and _whole_is_less(self.epsilon, self.delta, self.per_unit)

    @property
    def number(self) -> Asked | Tallies:
        """How many units there are, and at which price that is told."""
        return Tallies(1, NUMBER_SHARE * (self.epsilon or 1.0)) if self.pure else NUMBER

    # --- what is released -----------------------------------------------------------------------------------------
    @property
    def terms(self) -> StepTerms:
        """What the noise of a step is measured by."""
        return StepTerms(
            self.noise_multiplier or 1.0,
            self.sample_rate,
            max(1.0, self.sample_rate * self.units),
            self.per_unit,
            self.entities,
            self.shrink,
        )

    @property
    def counting(self) -> Counting:
        """What noise and cost of the counts follow from."""
        return Counting(self.units, self.per_unit, self.entities, self.relations, self.prior_epsilon)

    @property
    def stages(self) -> Stages:
        """How the noise of the steps falls."""
        return Stages(self.steps, self.noise_decay)

    @property
    def guarantee(self) -> str:
        """dp, or why nothing is promised."""
        return guarantee_of(self.mechanism)

    def step(self, factor: float = 1.0) -> Event:
        """What one private step costs, with so much of its noise."""
        return self._prices(factor)[0]

    def _prices(self, factor: float) -> list[Event]:
        """Today's price of a step, and those of earlier versions, which a ledger may still say."""
        mechanism, terms = registry.find("mechanisms", self.mechanism), self.terms
        own = replace(terms, noise_multiplier=factor * terms.noise_multiplier)
        return [mechanism.event(own), *mechanism.earlier(own)]

    def steps_between(self, first: int, last: int) -> list[Event]:
        """What these steps cost (``last`` not among them): an event for each stage."""
        return [repeated(count, self.step(factor)) for count, factor in self.stages.parts(first, last)]

    @property
    def counted(self) -> Event:
        """What the counts cost."""
        return together(*self.counting.events(self.prior_noise or 1.0))

    @property
    def answered(self) -> Event:
        """What the answers cost."""
        return answered(self.per_unit, self.answer_epsilon or 0.0)

    @property
    def norms(self) -> Event:
        """What the histogram of gradient norms costs."""
        return histogram(self.units)

    def releases(self) -> list[Release]:
        """All of them, in the order they are made."""
        made = [Release("insecure noise", non_private(SEEDED))] if self.seeded else []
        made.append(Release("noisy number of confidential units", self.number.event))
        if self.counts:
            made.append(Release("noisy marginals", self.counted))
        if self.asks:
            made.append(Release("randomised response", self.answered))
        if self.clip_from_data and self.steps:
            made.append(Release("clip norm: noisy histogram of gradient norms", self.norms))
        return made + [Release("private steps", event) for event in self.steps_between(0, self.steps)]

    def events(self) -> list[Event]:
        """What all of it costs."""
        return [release.event for release in self.releases()]

    # --- how much noise -------------------------------------------------------------------------------------------
    def settled(self, ledger: Ledger) -> Promise:
        """The same with the noise that keeps (ε, δ), beside what the ledger has already.

        For mechanisms without a guarantee it is the noise their papers would take. Refused where counts alone exceed the budget.
        """
        promise = self
        if promise.asks and promise.answer_epsilon is None:
            return promise._shared(ledger.events)
        if promise.counts and promise.pure and promise.prior_epsilon is None and promise.prior_noise is None:
            left = (promise.epsilon or 1.0) - sum(_epsilon_of(event) for event in ledger.events)
            promise = replace(promise, prior_epsilon=_down(left))
        if promise.counts and promise.prior_noise is None and promise.prior_epsilon is None:
            promise = replace(promise, prior_noise=promise._noise_of_counts(ledger.events))
        if promise.counts:
            promise.check_counts(ledger)
        if promise.noise_multiplier is None:
            promise = replace(promise, noise_multiplier=promise._noise_of_steps(ledger.events))
        return promise

    def _shared(self, already: Sequence[Event]) -> Promise:
        """ε divided between counts, where they are needed, and answers: a unit's answers are priced by the lesser bound."""
        known, total = _private(already), self.epsilon or 1.0
        counted = min(COUNTS_AT_MOST, COUNTS_SHARE * total) if self.counts else None
        known += [pure(counted)] if counted else []
        left = total - sum(map(_epsilon_of, known))
        least = left / self.per_unit  # added up
        if self.per_unit > 1 and self.delta > 0:
            found = calibrate(lambda noise: [*known, answered(self.per_unit, 1 / noise)], total, self.delta)
            least = max(least, 1 / found)
        if not all(event["event"] == "pure" for event in known):
            least = 1 / calibrate(
                lambda noise: [*known, answered(self.per_unit, 1 / noise)], total, self.delta
            )
        return replace(self, prior_epsilon=counted, answer_epsilon=_down(least))

    def _noise_of_counts(self, already: Iterable[Event]) -> float:
        """All of the budget if nothing else is learnt, else a fixed share of it."""
        known = _private(already)
        alone = calibrate(
            lambda noise: [*known, *self.counting.events(noise)], self.epsilon or 1.0, self.delta
        )
        return alone if not self.steps else alone / math.sqrt(PRIOR_SHARE)

    def _noise_of_steps(self, already: Iterable[Event]) -> float:
        if not self.steps:
            return 1.0
        known = _private(already)
        known += [self.counted] if self.counts else []
        known += [self.norms] if self.clip_from_data else []

        def events(noise: float) -> list[Event]:
            if self.guarantee == "dp":
                return [*known, *replace(self, noise_multiplier=noise).steps_between(0, self.steps)]
            return [*known, repeated(self.steps, sampled(self.sample_rate, gaussian(noise)))]

        return calibrate(events, self.epsilon or 1.0, self.delta)

    def check_counts(self, ledger: Ledger) -> None:
        """Raise if the counts would exceed the budget."""
        after = spent([*ledger.events, self.counted], self.delta).epsilon
        if self.epsilon is not None and ledger.private and after > self.epsilon:
            raise BudgetError(
                f"noisy marginals with noise {self.prior_noise:.3g} would bring ε to {after:.3g}, beyond the budget of "
                f"{self.epsilon:g}. Raise --prior-noise or --epsilon, or use --prior none."
            )

    # --- whether it was paid --------------------------------------------------------------------------------------
    def missing(
        self, charged: Sequence[Event], *, counts_are_there: bool, due: int | None, ended: bool
    ) -> list[str]:
        """What was done, or is said to have been, and is not among what was charged.

        ``due`` is how many steps there were, where the training may end early; ``ended`` says that the budget was spent before.
        """
        events, reasons = [part for event in charged for part in _each(event)], []
        if self.seeded and non_private(SEEDED) not in events:
            reasons.append("the ledger does not say that the noise was drawn from a given seed")
        if self.number.event not in events:
            reasons.append("the ledger does not charge the noisy number of units")
        if (counts_are_there or self.counts) and not any(self._pays_counts(event) for event in events):
            reasons.append("the ledger does not charge the noisy marginals")
        if self.asks and self.answered not in events:
            reasons.append("the ledger does not charge the answers")
        taken = [event for event in events if event["event"] == "repeated" and not is_pure(event)]
        if self.clip_from_data and taken and self.norms not in events:
            reasons.append("the ledger does not charge the histogram its clip norm was found by")
        stages = [(count, self._prices(factor)) for count, factor in self.stages.parts(0, self.steps)]
        if any(all(event["of"] not in prices for _, prices in stages) for event in taken):
            reasons.append("the ledger's private steps are not those of config.yaml")
        wanted = self.steps_between(0, self.steps if due is None else min(due, self.steps))
        for _, prices in stages:  # (stages with little between them may cost the same)
            paid, asked = (
                sum(int(e["times"]) for e in part if e["of"] in prices) for part in (taken, wanted)
            )
            if paid >= asked:
                continue
            more = spent([*charged, prices[0]], self.delta, grid=COARSE).epsilon
            if not (self.epsilon is not None and more > self.epsilon and ended):
                reasons.append(
                    "the ledger charges fewer private steps than config.yaml says, and the budget allowed more"
                )
            break
        return reasons

    def _pays_counts(self, event: Event) -> bool:
        return (
            event == self.counted if self.prior_epsilon is not None else _pays(event, self.prior_noise or 0.0)
        )


def _down(epsilon: float) -> float:
    """A little less, with six digits: rounded to the nearest, several of them could exceed the budget they are parts of.

    >>> _down(0.1234567)
    0.123456
    """
    return math.floor(epsilon * (1 - 1e-9) * 1e6) / 1e6


def _epsilon_of(event: Event) -> float:
    return float(event["epsilon"]) if event["event"] == "pure" else 0.0


@lru_cache(maxsize=256)
def _whole_is_less(epsilon: float | None, delta: float, per_unit: int) -> bool:
    """Whether geometric noise on counts has less variance than Gaussian noise for the same ε: by public facts."""
    if epsilon is None:
        return False
    whole = Tallies(2 * per_unit, (1 - NUMBER_SHARE) * epsilon)
    noise = calibrate(lambda one: [gaussian(NUMBER.multiplier), gaussian(one)], epsilon, delta)
    return whole.variance < Counting(1.0, per_unit, 1, 1).asked(noise).deviation ** 2


def best_of_is_paid(charged: Sequence[Event], mean: float, score_noise: float) -> bool:
    """Whether a ledger charges the trials a run is the best of: all of it was done by each of them."""
    number = gaussian(NUMBER.multiplier)
    chosen = [event for event in charged if event["event"] == "selected"]
    outside = [event for event in charged if event["event"] not in ("selected", "nothing")]
    inside = _each(chosen[0]) if len(chosen) == 1 and chosen[0]["mean"] == mean else []
    whole = number in inside and gaussian(score_noise) in inside
    return (
        whole and len(outside) > 0 and all(event == number for event in outside)
    )  # more than once after a crash


def _private(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if event["event"] != "non-private"]


def _each(event: Event) -> list[Event]:
    """What an event paid for: the best of several trainings paid for what each of them did."""
    return list(event["of"].get("all", [])) if event["event"] == "selected" else [event]


def _pays(event: Event, multiplier: float) -> bool:
    """Whether an event is several Gaussian releases that together cost as much as one of this multiplier."""
    parts = event["all"] if event["event"] == "together" else []  # a single one is another release's charge
    if not multiplier or not parts or any(part["event"] != "gaussian" for part in parts):
        return False
    return bool(sum(part["noise_multiplier"] ** -2 for part in parts) >= (1 - 1e-9) * multiplier**-2)
