"""Where relations are: what leads from heads to tails, as true statements show it, and how far a target is from it."""

from __future__ import annotations

import numpy as np

from veilgraph.models.base import Model

FEWEST = 3  # true statements that a relation's place is taken from

Pair = tuple[np.ndarray, np.ndarray]  # rows of heads, rows of tails


def distances(model: Model, known: Pair, kinds: np.ndarray, asked: Pair, wanted: np.ndarray) -> Pair | None:
    """``[n]`` of what is asked about from the place of its relation (``wanted``), and from the nearest place.

    A relation's place is the mean translation of the statements of its kind that are ``known``, so that no pair of entities has
    to be enumerated. None if nothing is known well enough.
    """
    kinds_, code, count = np.unique(kinds, return_inverse=True, return_counts=True)
    moved = link(model, *known)
    total = np.zeros((len(kinds_), moved.shape[1]))
    np.add.at(total, code, moved)
    centres = (total / count[:, None])[count >= FEWEST]
    if not len(centres):
        return None
    place = {kind: i for i, kind in enumerate(kinds_[count >= FEWEST])}
    there = link(model, *asked)
    every = np.stack([np.abs(there - centre).sum(1) for centre in centres], 1)
    own = np.array([place.get(relation, -1) for relation in wanted])
    nearest = every.min(1)
    return np.where(own >= 0, every[np.arange(len(own)), own], nearest), nearest


def link(model: Model, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """``[n, width]`` what leads from head to tail: a difference; a turn where rows are complex numbers of a rotation; a product where
    the score is one."""
    if model.name == "distmult":
        return np.asarray(head * tail, np.float64)
    if model.name in ("rotate", "complex"):
        half = head.shape[1] // 2
        start, end = (rows[:, :half] + 1j * rows[:, half:] for rows in (head, tail))
        turned = end * start.conj()
        if model.name == "rotate":
            turned = np.exp(1j * np.angle(turned))
        return np.concatenate([turned.real, turned.imag], 1).astype(np.float64)
    return np.asarray(tail - head, np.float64)
