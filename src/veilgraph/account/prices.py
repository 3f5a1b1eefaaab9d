"""What each kind of release is measured by and costs: plain numbers, no tensors.

A price follows from public facts and settings alone, so that settling, planning, paying and verifying read the same one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from veilgraph.account.events import Event, gaussian, pure, repeated, sampled, together

COUNT_NOISE = 100.0  # standard deviation of the count of units; its cost is nearly nothing
HISTOGRAM_NOISE = 10.0  # deviation of every bin of the histogram a clip norm is read off
ASKED = 20_000  # units: more are not asked for their norm
WHOLE = 30_000_000  # cells: up to here a table of counts is drawn and kept whole
MOST_ROLES = 5000  # rows of a table: beyond this many no factor model is made
STAGES = 8  # of noise that falls


class Asked(NamedTuple):
    """A total that is to be released: what one unit can change it by (L2), and the noise in units of that."""

    sensitivity: float
    multiplier: float

    @property
    def event(self) -> Event:
        """What releasing it alone costs."""
        return gaussian(self.multiplier)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on every number of the total."""
        return self.sensitivity * self.multiplier


class Tallies(NamedTuple):
    """Counts that are to be released with whole-number noise: how far one unit moves them in all (L1), and the ε that is to cost."""

    reach: int
    epsilon: float

    @property
    def each(self) -> float:
        """ε for a count that changes by one."""
        return self.epsilon / self.reach

    @property
    def event(self) -> Event:
        """What it costs."""
        return pure(self.epsilon)

    @property
    def variance(self) -> float:
        """Of the noise on every count.

        >>> round(Tallies(2, 2.0).variance, 3)
        1.841
        """
        kept = math.exp(-self.each)
        return 2 * kept / (1 - kept) ** 2


class Answers(NamedTuple):
    """Cells that are asked about: how many there are, how many of them one unit can be in, and the ε of each answer."""

    cells: int
    per_unit: int
    epsilon: float

    @property
    def event(self) -> Event:
        """What all of them cost: a unit shows in its own cells alone."""
        return answered(self.per_unit, self.epsilon)


def answered(per_unit: int, epsilon: float) -> Event:
    """What answers with this ε cost a unit that so many of them are about."""
    return pure(epsilon) if per_unit == 1 else repeated(per_unit, pure(epsilon))


def price(asked: Sequence[Asked], rate: float | None = None, also: Sequence[Event] = ()) -> Event:
    """What releasing these totals of one batch costs; ``rate`` is that of its sampling, None where nothing was sampled.

    Several Gaussian releases of one batch cost one with 1/σ² = Σ 1/σᵢ²; ``also`` is what the step costs beside them.
    """
    joined = gaussian(1 / math.sqrt(sum(one.multiplier**-2 for one in asked)))
    step = joined if rate is None else sampled(rate, joined)
    return together(step, *also) if also else step


def asking_rate(units: float) -> float:
    """The chance of a unit to be asked for its gradient's norm; ``units`` is their noisy number."""
    return min(1.0, ASKED / units)


def histogram(units: float) -> Event:
    """The cost of the histogram a clip norm is read off."""
    return sampled(asking_rate(units), gaussian(HISTOGRAM_NOISE))


@dataclass(frozen=True)
class StepTerms:
    """What the noise of a step is measured by. ``expected`` (units per batch) and ``per_unit`` are public."""

    noise_multiplier: float
    rate: float  # of sampling
    expected: float  # units per batch: what sums are divided by
    per_unit: int = 1
    entities: int = 0  # size of the vocabulary
    shrink: bool = False  # noisy rows towards zero


@dataclass(frozen=True)
class Stages:
    """``steps`` steps in stages, each with less noise than the one before; that of the last is ``decay`` times that of the first.

    The schedule follows from these two numbers alone, so it costs nothing by itself: every stage is charged with its own noise.
    Choosing the decay by looking at confidential statements would cost something: rehearse it on unrestricted ones (``veil plan``).

    >>> list(Stages(10, 1.0).parts(0, 10))
    [(10, 1.0)]
    """

    steps: int
    decay: float

    @property
    def count(self) -> int:
        """How many stages there are."""
        return 1 if self.decay == 1 else max(1, min(STAGES, self.steps))

    def _stage(self, number: int) -> int:
        return min(self.count - 1, number * self.count // max(self.steps, 1))

    def factor(self, number: int) -> float:
        """Of the noise of a step, by its place in the schedule."""
        share = self._stage(number) / max(self.count - 1, 1)
        return round(self.decay**share, 6)  # the same on every machine

    def parts(self, first: int, last: int) -> Iterator[tuple[int, float]]:
        """How many of the steps from ``first`` to before ``last`` are in each stage, and the stage's factor."""
        while first < last:
            stage = self._stage(first)
            end = last if stage == self.count - 1 else min(last, -(-(stage + 1) * self.steps // self.count))
            yield end - first, self.factor(first)
            first = end


class Shares(NamedTuple):
    """The parts of the budget (of 1/σ²) that the releases of counts take."""

    first: float = 1.0
    weighted: float = 0.0
    roles: float = 0.0


SHARES = (  # where noise is at most so large, compared with the statements of an average entity
    (0.05, Shares(0.4, 0.48, 0.12)),
    (0.1, Shares(0.4, 0.4, 0.2)),
)


@dataclass(frozen=True)
class Counting:
    """Public facts about a table of counts: what its noise and its cost follow from."""

    units: float  # the noisy number of units
    per_unit: int
    entities: int
    relations: int
    epsilon: float | None = None  # of whole-number noise; None: Gaussian

    @property
    def tallies(self) -> Tallies:
        """The one release with whole-number noise: a unit moves two counts by one for each of its statements."""
        assert self.epsilon is not None
        return Tallies(2 * self.per_unit, self.epsilon)

    @property
    def whole(self) -> bool:
        """Whether the table is drawn and kept whole."""
        return 2 * self.relations * self.entities <= WHOLE

    def asked(self, multiplier: float, share: float = 1.0) -> Asked:
        """A release that takes this share of the budget: a unit changes two cells for each of its statements by one."""
        return Asked(math.sqrt(2) * self.per_unit, multiplier / math.sqrt(share))

    def shares(self, multiplier: float) -> Shares:
        """How the budget is divided: kinds are worth asking for where an entity has more statements than noise."""
        noise = self.asked(multiplier).deviation / max(2 * self.units * self.per_unit / self.entities, 1e-9)
        if self.epsilon is not None or not self.whole or 2 * self.relations > MOST_ROLES:
            return Shares()
        return next((shares for most, shares in SHARES if noise <= most), Shares())

    def events(self, multiplier: float) -> list[Event]:
        """The cost of the releases: together as much as one Gaussian of this multiplier."""
        if self.epsilon is not None:
            return [self.tallies.event]
        shares = self.shares(multiplier)
        return [gaussian(self.asked(multiplier, share).multiplier) for share in shares if share]
