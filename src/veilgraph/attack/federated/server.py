"""Server: differences of the victim's rows are translations; true ones gather around their relation's."""

from __future__ import annotations

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene, Three
from veilgraph.attack.federated.places import Pair, distances, says_how_it_links


class Server(Attack):
    """The server, which knows which rows are whose (tokens alone would not tell it) and has some true statements to start from.

    A target is scored by its distance from the place of its relation in the victim's rows, from the nearest of all, and by how much
    nearer the victim's own steps brought it; and by how well the targets of a relation agree with each other, for which no statement
    has to be known.
    """

    name = "server"
    sees = "server"

    def blind(self, scene: Scene) -> str | None:
        if not scene.strategy.shares_entities:
            return "the server sees no entity's row, and has none of its own to score a statement with"
        if not says_how_it_links(scene.model):
            return (
                f"{scene.model.name} does not say what leads from heads to tails, so nobody can compare rows"
            )
        return None

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        found = scene.seen("server", number)
        if found is None:
            return None
        at, rows = scene.places, found["rows"]
        ends = Three(rows[at[:, 0]], np.empty((len(at), 0)), rows[at[:, 1]])
        scores = {"agreement": scene.agreement(ends, own=False)}
        now, before = (self._distances(scene, found[name]) for name in ("rows", "sent"))
        if now is None or before is None:
            return scores
        return {
            **scores,
            "its relation": -now[0],
            "any relation": -now[1],
            "nearer its relation": before[0] - now[0],
            "nearer any relation": before[1] - now[1],
        }

    @staticmethod
    def _distances(scene: Scene, rows: np.ndarray) -> Pair | None:
        if not scene.auxiliary:
            return None
        known, at = np.array(scene.auxiliary), scene.places
        return distances(
            scene.model,
            (rows[known[:, 0]], rows[known[:, 2]]),
            known[:, 1],
            (rows[at[:, 0]], rows[at[:, 1]]),
            scene.relations,
        )
