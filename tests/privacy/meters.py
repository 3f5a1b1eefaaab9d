"""A meter for tests of parts: it asks for no payment, and remembers what would have been due."""

from __future__ import annotations

from pathlib import Path

from veilgraph.account.events import Event
from veilgraph.account.ledger import Ledger
from veilgraph.noise.gauss import Noise
from veilgraph.noise.measure import Meter
from veilgraph.noise.sample import Token


class OpenMeter(Meter):
    """Draws whatever is asked for; what it would have cost is in ``taken``."""

    def __init__(self, noise: Noise) -> None:
        super().__init__(Ledger(Path("nowhere")), noise)
        self.taken: list[Event] = []

    def pay(self, event: Event, what: str, **more: object) -> None:
        pass

    def _take(self, event: Event) -> None:
        self.taken.append(event)


def whole() -> Token:
    """Of a batch that everybody is in."""
    return Token(1.0)
