"""Client, active: sends the tails of the targets reversed, and asks which of them the others put back in place."""

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

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        sent, after, last = (scene.seen("client", number + i) for i in range(3))
        if sent is None or not scene.hostile:
            return None
        if not reversed_tails(sent):
            return Passive().scores(scene, number)
        return None if after is None or last is None else compared(scene, after, last, "received")


def reversed_tails(sent: dict[str, np.ndarray]) -> bool:
    """Whether tails were sent reversed in that round: nearer to the opposite of what came in than to it."""
    came, went = sent["received.tail"], sent["sent.tail"]
    return bool(np.linalg.norm(came + went) < np.linalg.norm(came - went))
