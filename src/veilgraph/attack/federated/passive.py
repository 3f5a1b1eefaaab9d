"""Client, passive: takes its own share out of the mean that comes back, and asks which targets fit what is left."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene, three

Seen = Mapping[str, np.ndarray]


class Passive(Attack):
    """A curious client: what the other holders must have sent, scored with what is its own, against what it sent itself.

    It knows how many clients hold a row. Differences of scores, not ratios: scores have signs.
    """

    name = "passive"
    sees = "client"

    def blind(self, scene: Scene) -> str | None:
        return None if scene.strategy.aggregates else "nothing of others comes back to a client"

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        now, after = scene.seen("client", number), scene.seen("client", number + 1)
        return None if now is None or after is None else compared(scene, now, after, "sent")


def compared(scene: Scene, now: Seen, after: Seen, before: str) -> dict[str, np.ndarray] | None:
    """Scores of what the others made of the rows of a round, and against the rows ``before``: sent by oneself, or received by all."""
    theirs, start = three(after, "others"), three(now, before)
    if theirs is None or start is None:
        return None
    score, standing = scene.score(theirs), scene.standing(theirs)
    return {
        "theirs": score,
        "theirs − before": score - scene.score(start),
        "theirs among others": standing,
        "theirs − before among others": standing - scene.standing(start),
        **scene.together(theirs),
    }
