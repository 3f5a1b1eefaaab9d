"""Noise is drawn here and nowhere else, so that what is charged and what is done are one call.

``Meter.measure`` is told what is to be released: for each total its sensitivity (how far one unit can move it) and a noise
multiplier, and the token of the sampler that drew the batch, which carries its rate. The event follows from these numbers, and so
do the deviations of the noise: neither can be had without the other. The event must be on the ledger, on disk, before — paid for
in advance (``pay``) or, for what is released once, by ``release`` itself. What was not paid for is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from veilgraph.account.events import Event, non_private, pure
from veilgraph.account.ledger import Ledger
from veilgraph.account.prices import Answers, Asked, Tallies, price
from veilgraph.errors import PrivacyError
from veilgraph.noise.gauss import Noise
from veilgraph.noise.integers import lies, two_sided
from veilgraph.noise.sample import Token

GRID = 2.0**-10  # of the deviation: what is released once is rounded to a power of two about so large


class Watcher(Protocol):
    """Who is shown every release as it is made: an audit, a test."""

    def measured(self, event: Event, asked: Sequence[Asked], token: Token | None) -> None:
        """Noise is about to be drawn for these totals, at the price of this event."""

    def released(self, noisy: np.ndarray) -> None:
        """A total that is released once, with its noise."""


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(by: Watcher) -> Iterator[None]:
    """Show every release that is made inside to somebody."""
    before = _watcher.set(by)
    try:
        yield
    finally:
        _watcher.reset(before)


class Gauss:
    """The noise of one total, paid for: made by ``Meter.measure`` alone."""

    def __init__(self, deviation: float, noise: Noise, watcher: Watcher | None = None) -> None:
        self.deviation = deviation
        self._noise, self._watcher = noise, watcher

    def draw(self, *shape: int) -> np.ndarray:
        """Noise of this deviation, in float64."""
        drawn = self._noise.normal(*shape)
        drawn *= self.deviation
        return drawn

    def on(self, exact: np.ndarray) -> np.ndarray:
        """The total with its noise, rounded to a public grid: the last bits of a sum of doubles would tell what was added."""
        noisy = rounded(exact + self.draw(*exact.shape), self.deviation)
        if self._watcher is not None:
            self._watcher.released(noisy)
        return noisy


class Owed:
    """Noise of several releases that is drawn later, together: their variances add up."""

    def __init__(self, noise: Noise) -> None:
        self.variance = 0.0
        self._noise = noise

    def add(self, one: Gauss, share: float) -> None:
        """So many times the noise of this release is due from now on."""
        due = (one.deviation * share) ** 2
        later = self.variance + due
        while later - self.variance < due:  # a small variance must not vanish beside a large sum
            later = math.nextafter(later, math.inf)
        self.variance = later

    def standard(self, *shape: int) -> np.ndarray:
        """Standard normal numbers, for what is due."""
        return self._noise.normal(*shape)


class Meter:
    """The noise of a training, behind its ledger."""

    def __init__(self, ledger: Ledger, noise: Noise) -> None:
        self.ledger, self._noise = ledger, noise
        self._unused: list[tuple[Event, int]] = []  # what was paid for and not yet drawn
        self._watcher = _watcher.get()

    def coins(self) -> np.random.Generator:
        """A generator for sampling, keyed like the noise."""
        return self._noise.coins()

    def owed(self) -> Owed:
        """For noise that is drawn later."""
        return Owed(self._noise)

    def pay(self, event: Event, what: str, **more: Any) -> None:
        """Charge an event, see it on disk, and have it to draw on."""
        self.ledger.charge(event, what, **more)
        self.paid(event)

    def paid(self, event: Event) -> None:
        """Draw on an event that is on the ledger already, and that nothing was drawn for."""
        if event["event"] == "together":
            for part in event["all"]:
                self.paid(part)
        elif event["event"] == "repeated":
            self._unused.append((event["of"], int(event["times"])))
        else:
            self._unused.append((event, 1))

    def measure(
        self,
        *asked: Asked,
        token: Token | None = None,
        also: Sequence[Event] = (),
        unsound: str | None = None,
    ) -> list[Gauss]:
        """The noise of these totals of one batch, one after the other; refused where their event was not paid for.

        Several Gaussian releases of one batch cost one with 1/σ² = Σ 1/σᵢ². ``also`` is what the step costs beside them;
        ``unsound`` says why a release has no guarantee, whatever its noise.
        """
        event = (
            price(asked, None if token is None else token.rate, also)
            if unsound is None
            else non_private(unsound)
        )
        if token is not None:
            token.spend()
        self._take(event)
        if self._watcher is not None:
            self._watcher.measured(event, asked, token)
        return [Gauss(one.deviation, self._noise, self._watcher) for one in asked]

    def release(
        self, exact: np.ndarray, asked: Asked | Tallies, what: str, token: Token | None = None, **more: Any
    ) -> np.ndarray:
        """Something released once: charged, then drawn, on a public grid.

        Reads confidential data: the total. Releases: the total with its noise.
        """
        if isinstance(asked, Tallies):
            self.pay(asked.event, what, **more)
            return self.counts(exact, asked)
        self.pay(price([asked], None if token is None else token.rate), what, **more)
        return self.measure(asked, token=token)[0].on(exact)

    def answers(self, truth: np.ndarray, asked: Answers) -> np.ndarray:
        """Which of ``asked.cells`` are answered yes: every true answer is kept, or turned round, by its own coin; refused if not paid for.

        ``truth`` are the cells whose true answer is yes, sorted, each once; a unit has at most ``asked.per_unit`` of them.

        Reads confidential data: the cells. Releases: the answers.
        """
        for _ in range(asked.per_unit):
            self._take(pure(asked.epsilon))
        if self._watcher is not None:
            self._watcher.measured(asked.event, (), None)
        said = np.setxor1d(truth, lies(asked.cells, asked.epsilon, self.coins()), assume_unique=True)
        if self._watcher is not None:
            self._watcher.released(said)
        return said

    def counts(self, exact: np.ndarray, asked: Tallies) -> np.ndarray:
        """Whole numbers with two-sided geometric noise; refused where that was not paid for.

        Reads confidential data: the counts, which a unit moves by ``asked.reach`` in all. Releases: the counts with their noise.
        """
        self._take(asked.event)
        if self._watcher is not None:
            self._watcher.measured(asked.event, (), None)
        noisy = exact + two_sided(exact.size, asked.each, self.coins()).reshape(exact.shape)
        if self._watcher is not None:
            self._watcher.released(noisy)
        return noisy

    def _take(self, event: Event) -> None:
        for place, (paid, times) in enumerate(self._unused):
            if same(paid, event):
                self._unused[place : place + 1] = [(paid, times - 1)] if times > 1 else []
                return
        raise PrivacyError(
            f"noise was asked for that the ledger does not pay for: {event}. Nothing was drawn. This is a mistake in the program "
            "(a mechanism whose step costs something else than it says), not in the settings: please report it."
        )


def rounded(values: np.ndarray, deviation: float) -> np.ndarray:
    """To the nearest multiple of a power of two, a thousandth of the noise or so.

    >>> rounded(np.array([1.2345678]), 1.0)
    array([1.234375])
    """
    if not deviation:
        return values
    step = grid(deviation)
    return np.rint(values / step) * step


def grid(deviation: float) -> float:
    """The power of two that noise of this deviation is rounded to."""
    return float(2.0 ** math.floor(math.log2(deviation)) * GRID)


def same(one: Any, other: Any) -> bool:
    """Whether two events are the same, but for rounding."""
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
