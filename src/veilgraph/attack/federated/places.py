"""Where relations are: what leads from heads to tails, as true statements show it, and how far a target is from it."""

from __future__ import annotations

import numpy as np
import torch

from veilgraph.errors import InputError
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
    """``[n, v]`` what leads from heads to tails, as the scorer says; an attack asks first whether it says anything (``blind``)."""
    found = model.link(*(torch.from_numpy(np.asarray(rows, np.float64)) for rows in (head, tail)))
    if found is None:
        raise UnknownLink(model.name)
    return np.asarray(found.numpy(), np.float64)


def says_how_it_links(model: Model) -> bool:
    """Whether a scorer says what leads from heads to tails."""
    nobody = torch.zeros(1, model.entity_width, dtype=torch.float64)
    return model.link(nobody, nobody) is not None


class UnknownLink(InputError):
    """A scorer that does not say what leads from heads to tails."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} does not say what leads from heads to tails (Model.link), and an attack that guessed it would look weak, and the "
            "model safe. Write the scorer's link, a line or two."
        )
