"""Protects all confidential statements with one entity as head, and its labels: clipped noisy gradients on subgraphs that share nothing.

An entity's example reads its place among unrestricted statements, the places of the tails of its own confidential statements, and its
labels; no other example reads any of them. A confidential statement belongs to its head, so each entity's statements occur in one
subgraph: adding or removing an entity adds or removes one clipped gradient, and Poisson sampling amplifies as ever. (Where a subgraph
may also read statements of others, a statement occurs in many, and the noise must grow with their number: Daigavane et al. 2021.)

What is released is the classifier. Its answer for an entity is computed from that entity's confidential statements and is for who holds
them: it is not released, and not covered.
"""

from __future__ import annotations

import numpy as np
import torch

from veilgraph.classify.adjacency import along
from veilgraph.classify.config import ClassifyConfig
from veilgraph.classify.guarantees.base import Book, Guarantee, Outcome, Task
from veilgraph.classify.places import places, unit
from veilgraph.classify.private_steps import private_fit


class Node(Guarantee):
    """All confidential statements with one entity as head, and its labels."""

    name = "node"
    unit = "node"
    words = "all confidential statements with one entity (a patient, say) as head and its labels are"
    words_before = "all confidential statements about one entity (a patient, say) and its labels are"
    asked = "such an entity (where its labels are known to stay, ε counts twice)"
    mechanism = "clipped noisy gradients of subgraphs that share nothing"
    units = ("statement", "head")
    reads = ("places", "hops", "steps", "sample_rate", "clip", "learning_rate", "several")

    def learn(self, task: Task, config: ClassifyConfig, book: Book) -> Outcome:
        """Reads confidential data: statements and labels, through noisy gradients. Releases: the classifier."""
        rows = torch.from_numpy(features(task, config))
        train = torch.from_numpy(task.folds.train)
        truth = torch.from_numpy(task.truth)[train]
        head = private_fit(rows[train], truth, config, book)
        return Outcome(head.chances(rows).numpy(), head.tensors, open_scores=False)


def features(task: Task, config: ClassifyConfig) -> np.ndarray:
    """``[nodes, 2 × places]``: a row is a function of unrestricted statements and of the confidential ones it is the head of."""
    place = places(task.unrestricted, task.nodes, config.places, config.hops, config.seed)
    own = along(task.confidential[:, 2], task.confidential[:, 0], task.nodes) @ place.astype(np.float64)
    return np.concatenate([place, unit(own)], 1).astype(np.float32)
