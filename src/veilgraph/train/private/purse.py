"""What private steps cost, paid before they are taken, in blocks, as far as the budget goes."""

from __future__ import annotations

import math
import time

from veilgraph.account.calibrate import steps_left
from veilgraph.account.epsilon import COARSE, spent
from veilgraph.account.events import Event, nothing, repeated
from veilgraph.account.promise import Promise
from veilgraph.noise.measure import Meter

BLOCKS = 20  # steps are paid for in advance, in blocks that grow to this share of them: what a crash may lose


class Purse:
    """The steps of a promise, on its ledger."""

    def __init__(self, promise: Promise, meter: Meter) -> None:
        self.promise, self.meter, self.ledger = promise, meter, meter.ledger
        self.stages = promise.stages
        self.paid, self.block = 0, 1
        self.left: int | None = None  # steps the budget still allows
        self.shown, self.next_look = 0.0, 0.0  # ε as last looked up, and when to look again

    def pay(self, number: int) -> bool:
        """Have this step on the ledger, and on disk, before it is taken; False if the budget does not allow it."""
        if self.paid == 0:
            if not self._charge(number, number + self.block):
                return False
            self.block = min(2 * self.block, max(1, self.promise.steps // BLOCKS))  # public: no clock
        self.paid -= 1
        return True

    def pay_between(self, start: int, end: int) -> bool:
        """Have these steps on the ledger; False if the budget allows none at all."""
        return end - start <= self.paid or self._charge(start + self.paid, end)

    def _charge(self, first: int, last: int) -> bool:
        """Pay for these steps, stage by stage, or for as many as the budget allows; whether that is any.

        Steps are taken in the order they are paid for, so each of them finds its own stage's payment.
        """
        before = self.paid
        for count, factor in self.stages.parts(first, min(last, max(self.stages.steps, first + 1))):
            event = self.promise.step(factor)
            wanted = min(count, self._affordable(event, count, first))
            if wanted:
                said = f"{wanted} private steps ({self.promise.mechanism})"
                self.meter.pay(repeated(wanted, event), said)
                self.paid += wanted
                if self.left is not None:
                    self.left -= wanted
            if wanted < count:
                if self.ledger.found("spent") is None:
                    self.ledger.charge(nothing(), "the budget allows no further step", spent=True)
                break
        return self.paid > before

    def _affordable(self, event: Event, count: int, first: int) -> int:
        """How many of these steps the budget allows; looked up once, unless it ends within a schedule of several stages."""
        if self.left is not None:
            return self.left
        promise, total = self.promise, self.stages.steps
        if promise.epsilon is None or not self.ledger.private or promise.guarantee != "dp":
            self.left = total
            return total
        events = list(self.ledger.events)
        if promise.clip_from_data and self.ledger.found("clip") is None:
            events.append(promise.norms)  # will be paid before the first step
        if self.stages.count == 1:
            self.left = steps_left(events, event, promise.epsilon, promise.delta, total)
            return self.left
        rest = promise.steps_between(first, total)
        if spent([*events, *rest], promise.delta).epsilon <= promise.epsilon:
            self.left = total
            return total
        return steps_left(events, event, promise.epsilon, promise.delta, count)

    def epsilon(self) -> float | None:
        """ε so far at the run's δ (looked up again when that takes little of the time passed); None where nothing is promised."""
        began = time.perf_counter()
        if began >= self.next_look:
            self.shown = spent(self.ledger.events, self.promise.delta, grid=COARSE).epsilon
            now = time.perf_counter()
            self.next_look = now + 20 * (now - began)
        return self.shown if math.isfinite(self.shown) else None
