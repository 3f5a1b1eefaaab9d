"""Every total that is shown while an audit looks on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veilgraph.account.events import Event
from veilgraph.account.prices import Asked
from veilgraph.noise.sample import Token


class Recorded:
    """Keeps every total that is shown, as it was when it was released."""

    def __init__(self) -> None:
        self.noisy: list[np.ndarray] = []

    def measured(self, event: Event, asked: Sequence[Asked], token: Token | None) -> None:
        """What it costs is known."""

    def released(self, noisy: np.ndarray) -> None:
        """One after the other."""
        self.noisy.append(noisy.copy())
