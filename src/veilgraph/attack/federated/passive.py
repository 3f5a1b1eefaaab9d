"""Client, passive: takes its own share out of the mean that comes back, and asks which targets fit what is left."""

from __future__ import annotations

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene, others


class Passive(Attack):
    """A curious client: the other holders' rows, scored with its own relations, against its own rows.

    It knows how many clients hold a row. Differences of scores, not ratios: scores have signs.
    """

    name = "passive"
    sees = "client"

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        now, next_ = scene.seen("client", number), scene.seen("client", number + 1)
        if now is None or next_ is None:
            return None
        held = scene.targets.holders
        head = others(next_["received.head"], now["sent.head"], held[:, 0])
        tail = others(next_["received.tail"], now["sent.tail"], held[:, 1])
        theirs = scene.score(head, now["relations"], tail)
        own = scene.score(now["sent.head"], now["relations"], now["sent.tail"])
        standing = scene.standing(head, now["relations"], tail)
        before = scene.standing(now["sent.head"], now["relations"], now["sent.tail"])
        return {
            "theirs": theirs,
            "theirs − own": theirs - own,
            "theirs among others": standing,
            "theirs − own among others": standing - before,
        }
