"""Server and client together: the victim's very rows, scored with what is the client's own."""

from __future__ import annotations

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene, Three, three


class Collusion(Attack):
    """The server gives the client what the victim sent; no mean over several clients hides it, and no statement has to be known.

    ``moved`` compares with the rows that everybody began the round with: what the victim's own steps did to a target.
    """

    name = "collusion"
    sees = "server"

    def rounds(self, scene: Scene) -> list[int]:
        return scene.rounds("server") if scene.strategy.shares_entities else scene.rounds("client")

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        client = scene.seen("client", number)
        before = three(client, "received") if client is not None else None
        victim = self._victim(scene, number, before)
        if victim is None or before is None:
            return None
        theirs, standing = scene.score(victim), scene.standing(victim)
        return {
            "theirs": theirs,
            "moved": theirs - scene.score(before),
            "moved among others": standing - scene.standing(before),
            **scene.together(victim),
        }

    @staticmethod
    def _victim(scene: Scene, number: int, own: Three | None) -> Three | None:
        """The targets with the victim's rows: of entities as the server has them, of relations or bases as the client put them in."""
        client, server = scene.seen("client", number), scene.seen("server", number)
        if not scene.strategy.shares_entities:
            return None if client is None else three(client, "victim")
        if server is None or own is None:
            return None
        head, tail = (server["rows"][scene.places[:, i]] for i in (0, 1))
        return Three(head, own.relation, tail)
