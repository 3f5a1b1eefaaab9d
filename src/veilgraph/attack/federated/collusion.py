"""Server and client together: the victim's very rows, scored with the client's relations."""

from __future__ import annotations

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene


class Collusion(Attack):
    """The server gives the client what the victim sent; no mean over several clients hides it, and no statement has to be known.

    ``moved`` compares with the rows that everybody began the round with: what the victim's own steps did to a target.
    """

    name = "collusion"
    sees = "server"

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        victim, client = scene.seen("server", number), scene.seen("client", number)
        if victim is None or client is None:
            return None
        rows, relations = victim["rows"], client["relations"]
        head, tail = (rows[scene.places[:, i]] for i in (0, 1))
        theirs, standing = scene.score(head, relations, tail), scene.standing(head, relations, tail)
        before = scene.score(client["received.head"], relations, client["received.tail"])
        stood = scene.standing(client["received.head"], relations, client["received.tail"])
        return {
            "theirs": theirs,
            "moved": theirs - before,
            "moved among others": standing - stood,
            **scene.together(head, relations, tail),
        }
