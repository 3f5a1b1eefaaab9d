"""Targets that agree with each other: what leads from head to tail is alike in statements of one relation that were learnt.

A client's relations are its own, and an attacker's row of a relation may be far from the victim's. The targets themselves show where the
victim's is: those that were learnt point the same way, the others anywhere. Nothing is known of any target beforehand.
"""

from __future__ import annotations

import numpy as np
import torch

from veilgraph.attack.federated.places import link
from veilgraph.models.base import Model

STEPS = 5  # times that targets are weighed by how well they agreed before
TRUST = 0.3  # what the attacker's own row of a relation counts for beside one target
SHARP = 3.0  # how much more a target counts that agreed a standard deviation better


def agreement(
    model: Model, head: np.ndarray, tail: np.ndarray, kinds: np.ndarray, own: np.ndarray | None = None
) -> np.ndarray:
    """``[n]`` the cosine between what leads from a target's head to its tail and what the others of its relation (``kinds``) show.

    ``own`` is the attacker's row of every target's relation, if it has one. No target is compared with itself; one that has no
    other of its relation, nor a row of it, gets 0.
    """
    shown = _unit(link(model, head, tail))
    start = np.zeros(1)
    led = None if own is None else model.leads(torch.from_numpy(np.asarray(own, np.float64)))
    if led is not None:
        start = TRUST * _unit(led.numpy())
    place = np.unique(kinds, return_inverse=True)[1]
    weight = np.ones(len(shown))
    found = np.zeros(len(shown))
    for _ in range(1 + STEPS):
        total = np.zeros((int(place.max(initial=0)) + 1, shown.shape[1]))
        np.add.at(total, place, weight[:, None] * shown)
        found = np.einsum("nd,nd->n", shown, _unit(total[place] - weight[:, None] * shown + start))
        weight = 1 / (1 + np.exp(-SHARP * standard(found - np.median(found))))
    return found


def standard(score: np.ndarray) -> np.ndarray:
    """In standard deviations."""
    return np.asarray(score / max(float(score.std()), 1e-12))


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length one; those of length zero stay."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float64)
