"""TransE: the relation is a translation."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from veilgraph.errors import ConfigError
from veilgraph.models.base import DISTANCE_SPACE, Model, uniform
from veilgraph.models.similarity import L1_DISTANCE, L2_DISTANCE


class TransE(Model):
    """A translation from head to tail, compared by L1 (``norm=1``) or L2 (``norm=2``)."""

    name = "transe"
    formula = "−‖h + r − t‖"
    citation = "Bordes et al. 2013, Translating embeddings for modeling multi-relational data"
    defaults = {"loss": "self-adversarial", "optimiser": "adam", "reciprocal": False}
    search_space = {**DISTANCE_SPACE, "norm": [1, 2]}

    def __init__(self, dimension: int, *, norm: int = 1) -> None:
        super().__init__(dimension, norm=norm)
        if norm not in (1, 2):
            raise ConfigError(f"norm must be 1 or 2 for {self.name}, found {norm}")
        self.similarity = L1_DISTANCE if norm == 1 else L2_DISTANCE

    def initialise(self, entities: int, relations: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        bound = 6 / self.dimension if self.norm == 1 else 6 / self.dimension**0.5 / 3
        return (uniform(rng, entities, self.dimension, bound), uniform(rng, relations, self.dimension, bound))

    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        return head + relation

    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        return tail - relation

    def link(self, head: Tensor, tail: Tensor) -> Tensor:
        return tail - head

    def leads(self, relation: Tensor) -> Tensor:
        return relation
