"""touched: noise only on the rows a batch touches, as in DPKGE. Not differentially private.

Which rows moved is visible in the result, and it says which entities the batch's statements were about. Kept because it
is published and because an audit must be able to catch it: its event is non-private and its ε infinite.
"""

from __future__ import annotations

from veilgraph.account.events import Event, non_private
from veilgraph.account.prices import Asked, StepTerms
from veilgraph.models.parameters import Parameters
from veilgraph.train.mechanisms.base import Mechanism, Optimisers, Step, private_tables

WHY = "noise only on touched rows: which rows moved reveals the statements"


class Touched(Mechanism):
    """DPKGE's: noise on the rows a batch touches, which tells who was in it."""

    name = "touched"
    guarantee = "as published, not differentially private"

    @classmethod
    def event(cls, terms: StepTerms) -> Event:
        return non_private(WHY)

    def release(self, p: Parameters, optimisers: Optimisers, step: Step) -> None:
        asked = Asked(step.total.sensitivity, self.multiplier)
        noise = self.meter.measure(asked, token=step.token, unsound=WHY)[0]
        for name, table in private_tables(p, self.clip).items():
            rows = getattr(step.total, name)
            self.move(table, optimisers[name], rows, noise, rows.ids, step.rate)
