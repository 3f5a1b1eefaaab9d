"""TransH: a translation on a hyperplane of the relation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from veilgraph.models.base import DISTANCE_SPACE, GenericModel, uniform


class TransH(GenericModel):
    """Head and tail are projected on the relation's hyperplane before they are compared (L2)."""

    name = "transh"
    formula = "−‖(h − wᵀh·w) + r − (t − wᵀt·w)‖₂,  |w| = 1"
    citation = "Wang et al. 2014, Knowledge graph embedding by translating on hyperplanes"
    defaults = {"loss": "self-adversarial", "optimiser": "adam", "reciprocal": False}
    search_space = DISTANCE_SPACE

    @property
    def relation_width(self) -> int:
        return 2 * self.dimension

    def initialise(self, entities: int, relations: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        bound = 2 / self.dimension**0.5
        return uniform(rng, entities, self.dimension, bound), uniform(
            rng, relations, self.relation_width, bound
        )

    def score(self, head: Tensor, relation: Tensor, tail: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        translation, normal = relation.chunk(2, -1)
        normal = normal / normal.norm(dim=-1, keepdim=True).clamp(min=1e-9)
        difference = head - tail
        difference = difference - (difference * normal).sum(-1, keepdim=True) * normal + translation
        return -(difference * difference).sum(-1).add(1e-12).sqrt()

    def link(self, head: Tensor, tail: Tensor) -> Tensor:
        return tail - head

    def leads(self, relation: Tensor) -> Tensor:
        return relation.chunk(2, -1)[0]
