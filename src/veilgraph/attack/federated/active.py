"""Client, active: sends reversed what the targets hang on, and asks which of them the others put back in place."""

from __future__ import annotations

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene
from veilgraph.attack.federated.passive import Passive, compared


class Active(Attack):
    """A hostile client. In round N it sent reversed tails; in round N + 1 everybody trained from what that made of the rows.

    In the other rounds it sees what a curious one sees.
    """

    name = "active"
    sees = "client"

    def blind(self, scene: Scene) -> str | None:
        return Passive().blind(scene)

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        sent, after, last = (scene.seen("client", number + i) for i in range(3))
        if sent is None or not scene.hostile:
            return None
        if not reversed_tails(sent):
            return Passive().scores(scene, number)
        return None if after is None or last is None else compared(scene, after, last, "received")


def reversed_tails(sent: dict[str, np.ndarray]) -> bool:
    """Whether the attacker sent tails reversed in that round, as it wrote down."""
    return bool(sent["reversed"][0])
