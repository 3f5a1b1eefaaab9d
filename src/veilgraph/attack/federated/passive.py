"""Client, passive: takes its own share out of the mean that comes back, and asks which targets fit what is left."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene, others
from veilgraph.attack.federated.places import Pair

Seen = Mapping[str, np.ndarray]


class Passive(Attack):
    """A curious client: the other holders' rows, scored with its own relations, against its own rows.

    It knows how many clients hold a row. Differences of scores, not ratios: scores have signs.
    """

    name = "passive"
    sees = "client"

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        now, after = scene.seen("client", number), scene.seen("client", number + 1)
        return None if now is None or after is None else compared(scene, now, after, "sent")


def compared(scene: Scene, now: Seen, after: Seen, before: str) -> dict[str, np.ndarray]:
    """Scores of what the others made of the rows of a round, and against the rows ``before``: sent by oneself, or received by all."""
    theirs, start = _left(scene, now, after), _pair(now, before)
    score, standing = (f(theirs[0], now["relations"], theirs[1]) for f in (scene.score, scene.standing))
    scored, stood = (f(start[0], now["relations"], start[1]) for f in (scene.score, scene.standing))
    return {
        "theirs": score,
        "theirs − before": score - scored,
        "theirs among others": standing,
        "theirs − before among others": standing - stood,
        **scene.together(theirs[0], now["relations"], theirs[1]),
    }


def _left(scene: Scene, now: Seen, after: Seen) -> Pair:
    """The other holders' rows of the targets' heads and tails."""
    head, tail = (
        others(after[f"received.{end}"], now[f"sent.{end}"], scene.targets.holders[:, i])
        for i, end in enumerate(("head", "tail"))
    )
    return head, tail


def _pair(seen: Seen, name: str) -> Pair:
    return seen[f"{name}.head"], seen[f"{name}.tail"]
