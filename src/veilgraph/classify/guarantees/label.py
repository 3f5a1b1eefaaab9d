"""Protects one entity's labels, on a graph whose statements are public: clipped noisy gradients, one example for each labelled entity.

What goes into an example are places of the public graph and the entity's own labels, so an entity changes one example: Poisson sampling,
clipping and noise are what a private step asks for. The graph is public, so answers for all entities cost nothing more. It is what the
thesis calls private; there every step read all labelled entities, here each step draws some by coins.
"""

from __future__ import annotations

import torch

from veilgraph.classify.config import ClassifyConfig
from veilgraph.classify.guarantees.base import Book, Guarantee, Outcome, Task
from veilgraph.classify.places import places
from veilgraph.classify.private_steps import private_fit


class Label(Guarantee):
    """The labels of one entity."""

    name = "label"
    unit = "label"
    words = "the labels of one entity are"
    asked = "such labels"
    mechanism = "clipped noisy gradients of labelled entities"
    units = ("statement", "head")
    reads = ("places", "hops", "steps", "sample_rate", "clip", "learning_rate", "several")
    protects_statements = False

    def learn(self, task: Task, config: ClassifyConfig, book: Book) -> Outcome:
        """Reads confidential data: labels, through noisy gradients. Releases: the classifier and its answers."""
        rows = torch.from_numpy(
            places(task.unrestricted, task.nodes, config.places, config.hops, config.seed)
        )
        train = torch.from_numpy(task.folds.train)
        truth = torch.from_numpy(task.truth)[train]
        head = private_fit(rows[train], truth, config, book)
        return Outcome(head.chances(rows).numpy(), head.tensors, open_scores=True)
