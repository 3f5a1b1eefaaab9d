"""RotatE: the relation is a rotation of each complex coordinate."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from veilgraph.models.base import DISTANCE_SPACE, Model, complex_product, uniform
from veilgraph.models.similarity import L2_DISTANCE, MODULUS


class RotatE(Model):
    """A rotation by the angles stored in the relation row, compared by the sum of moduli (``norm=1``) or L2 (``norm=2``)."""

    name = "rotate"
    formula = "−Σ |h ∘ e^{iθ_r} − t|"
    citation = "Sun et al. 2019, RotatE (arXiv 1902.10197)"
    multiple_of = 2
    defaults = {"loss": "self-adversarial", "optimiser": "adam", "reciprocal": False}
    search_space = DISTANCE_SPACE

    def __init__(self, dimension: int, *, norm: int = 1) -> None:
        super().__init__(dimension, norm=norm)
        self.similarity = MODULUS if norm == 1 else L2_DISTANCE

    @property
    def relation_width(self) -> int:
        return self.dimension // 2

    def initialise(self, entities: int, relations: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        return (
            uniform(rng, entities, self.dimension, 12 / self.dimension),
            uniform(rng, relations, self.relation_width, math.pi),
        )

    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        return complex_product(head, torch.cat([relation.cos(), relation.sin()], -1))

    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        return complex_product(tail, torch.cat([relation.cos(), -relation.sin()], -1))

    def link(self, head: Tensor, tail: Tensor) -> Tensor:
        turned = complex_product(tail, head, conjugate=True)
        real, imaginary = turned.chunk(2, -1)
        return turned / torch.hypot(real, imaginary).clamp(min=1e-12).repeat(1, 2)

    def leads(self, relation: Tensor) -> Tensor:
        return torch.cat([relation.cos(), relation.sin()], -1)
