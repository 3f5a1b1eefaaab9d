"""Server: differences of the victim's rows are translations; true ones gather around their relation's."""

from __future__ import annotations

import numpy as np

from veilgraph.attack.federated.base import Attack, Scene

FEWEST = 3  # auxiliary statements of a relation


class Server(Attack):
    """The server, which knows which rows are whose (tokens alone would not tell it) and has some true statements to start from.

    A relation's place is the mean translation of its auxiliary statements in the victim's rows, so that no pair of entities has to be
    enumerated; a target is scored by its distance from the place of its relation, from the nearest of all, and by how much nearer
    the victim's own steps brought it.
    """

    name = "server"
    sees = "server"

    def scores(self, scene: Scene, number: int) -> dict[str, np.ndarray] | None:
        found = scene.seen("server", number)
        if found is None or not scene.auxiliary:
            return None
        now, before = (_distances(scene, found[name]) for name in ("rows", "sent"))
        if now is None or before is None:
            return None
        return {
            "its relation": -now[0],
            "any relation": -now[1],
            "nearer its relation": before[0] - now[0],
            "nearer any relation": before[1] - now[1],
        }


def _distances(scene: Scene, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """``[n]`` of every target's translation from the place of its relation, and from the nearest place."""
    known = np.array(scene.auxiliary)
    moved = _translation(scene, rows, known[:, 0], known[:, 2])
    kinds, code, count = np.unique(known[:, 1], return_inverse=True, return_counts=True)
    total = np.zeros((len(kinds), moved.shape[1]))
    np.add.at(total, code, moved)
    centres = (total / count[:, None])[count >= FEWEST]
    place = {kind: i for i, kind in enumerate(kinds[count >= FEWEST])}
    if not len(centres):
        return None
    asked = _translation(scene, rows, scene.places[:, 0], scene.places[:, 1])
    every = np.stack([np.abs(asked - centre).sum(1) for centre in centres], 1)
    own = np.array([place.get(relation, -1) for relation in scene.relations])
    return np.where(own >= 0, every[np.arange(len(own)), own], every.min(1)), every.min(1)


def _translation(scene: Scene, rows: np.ndarray, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """What leads from head to tail: a difference, or a turn where rows are complex numbers of a rotation."""
    if scene.model.name == "rotate":
        half = rows.shape[1] // 2
        complex_ = rows[:, :half] + 1j * rows[:, half:]
        turn = np.angle(complex_[tail] * complex_[head].conj())
        return np.concatenate([np.cos(turn), np.sin(turn)], 1)
    return np.asarray(rows[tail] - rows[head], np.float64)
