"""Marginals: no learning, only how often each entity is a tail or a head of a relation (see release/counts.py)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from veilgraph.models.base import Model


class Marginals(Model):
    """The prior alone: every score is zero before it is added."""

    name = "marginals"
    formula = "count of the tail (or head) in the relation"
    citation = "the baseline every private model here is measured against"
    defaults = {"loss": "softmax", "optimiser": "sgd", "regulariser": "none", "dimension": 1, "epochs": 0}
    search_space = {"learning_rate": (0.1, 1.0, "log")}
    learns = False
    silent_at_zero = True  # and everywhere else

    def initialise(self, entities: int, relations: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        return torch.zeros(entities, self.dimension), torch.zeros(relations, self.dimension)

    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        return head * 0 + relation * 0

    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        return tail * 0 + relation * 0
