"""Client, active: sends the tails of the targets reversed, and asks which of them the others put back in place."""

from __future__ import annotations

from functools import partial

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene, others
from veilgraph.attack.federated.passive import Passive


class Active(Attack):
    """A hostile client. In round N it sent reversed tails; in round N + 1 everybody trained from what that made of the rows.

    In the other rounds it sees what a curious one sees.
    """

    name = "active"
    sees = "client"

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        sent, after, last = (scene.seen("client", number + i) for i in range(3))
        if not any(
            _reversed(seen) for seen in map(partial(scene.seen, "client"), scene.rounds("client")) if seen
        ):
            return None
        if sent is not None and not _reversed(sent):
            return Passive().scores(scene, number)
        if sent is None or after is None or last is None:
            return None
        held = scene.targets.holders
        head = others(last["received.head"], after["sent.head"], held[:, 0])
        tail = others(last["received.tail"], after["sent.tail"], held[:, 1])
        before = scene.score(after["received.head"], after["relations"], after["received.tail"])
        theirs = scene.score(head, after["relations"], tail)
        standing = scene.standing(head, after["relations"], tail)
        stood = scene.standing(after["received.head"], after["relations"], after["received.tail"])
        return {
            "theirs − before": theirs - before,
            "theirs": theirs,
            "theirs among others": standing,
            "theirs − before among others": standing - stood,
        }


def _reversed(sent: dict[str, np.ndarray]) -> bool:
    """Whether tails were sent reversed in that round: nearer to the opposite of what came in than to it."""
    came, went = sent["received.tail"], sent["sent.tail"]
    return bool(np.linalg.norm(came + went) < np.linalg.norm(came - went))
