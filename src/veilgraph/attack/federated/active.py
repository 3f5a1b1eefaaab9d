"""Client, active: sends the tails of the targets reversed, and asks which of them the others put back in place."""

from __future__ import annotations

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene, others


class Active(Attack):
    """A hostile client. In round N it sent reversed tails; in round N + 1 everybody trained from what that made of the rows."""

    name = "active"
    sees = "client"

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        sent, after, last = (scene.seen("client", number + i) for i in range(3))
        if sent is None or after is None or last is None:
            return None
        if not _reversed(sent):
            return None
        held = scene.targets.holders
        head = others(last["received.head"], after["sent.head"], held[:, 0])
        tail = others(last["received.tail"], after["sent.tail"], held[:, 1])
        before = scene.score(after["received.head"], after["relations"], after["received.tail"])
        theirs = scene.score(head, after["relations"], tail)
        return {"theirs − before": theirs - before, "theirs": theirs}


def _reversed(sent: dict[str, np.ndarray]) -> bool:
    """Whether tails were sent reversed in that round: nearer to the opposite of what came in than to it."""
    came, went = sent["received.tail"], sent["sent.tail"]
    return bool(np.linalg.norm(came + went) < np.linalg.norm(came - went))
