"""Which labelled entities are learnt from, and which are told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilgraph.errors import InputError
from veilgraph.load.labels import Labels


@dataclass(frozen=True)
class Folds:
    """Ids of entities."""

    train: np.ndarray
    test: np.ndarray


def folds_of(labels: Labels, nodes: int, share: float, seed: int) -> Folds:
    """The source's own division, or a coin for every entity of the graph.

    Whether an entity is learnt from does not depend on which others have labels: where labels are protected, neighbours
    differ in one example.
    """
    if labels.fold is not None:
        train, test = (np.unique(labels.entity[labels.fold == name]) for name in ("train", "test"))
        test = np.setdiff1d(test, train)
        if not len(train) or not len(test):
            raise InputError("no entity of the graph has a label to learn from, or none has one to be told.")
        return Folds(train, test)
    labelled = np.unique(labels.entity)
    drawn = np.random.default_rng(seed).random(nodes)[labelled] < share
    if drawn.all() or not drawn.any():
        raise InputError(
            f"{len(labelled)} labelled entities are too few to learn from {share:g} of them and tell others."
        )
    return Folds(labelled[drawn], labelled[~drawn])


def truth_of(labels: Labels, nodes: int) -> np.ndarray:
    """``[nodes, labels]`` ones and zeros."""
    truth = np.zeros((nodes, len(labels.names)), np.float32)
    truth[labels.entity, labels.label] = 1
    return truth
