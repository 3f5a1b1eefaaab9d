"""QuatE: the relation rotates each quaternion coordinate."""

from __future__ import annotations

import torch
from torch import Tensor

from veilgraph.models.base import LINEAR_SPACE, Model


class QuatE(Model):
    """The head times a unit quaternion per coordinate, compared with the tail by dot product."""

    name = "quate"
    formula = "⟨h ⊗ r/|r|, t⟩"
    citation = "Zhang et al. 2019, Quaternion knowledge graph embeddings (arXiv 1904.10281)"
    multiple_of = 4
    defaults = {"loss": "softmax", "optimiser": "adagrad", "regulariser": "n3", "reciprocal": True}
    search_space = LINEAR_SPACE

    def initialise(self, entities, relations, rng):  # type: ignore[no-untyped-def]
        tables = super().initialise(entities, relations, rng)
        tables[1][:, : self.dimension // 4] += (
            1.0  # near the identity rotation: a unit norm needs a direction
        )
        return tables

    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        return hamilton_product(head, unit(relation))

    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        return hamilton_product(tail, conjugate(unit(relation)))

    def link(self, head: Tensor, tail: Tensor) -> Tensor:
        return hamilton_product(conjugate(head), tail)

    def leads(self, relation: Tensor) -> Tensor:
        return unit(relation)


def unit(rows: Tensor) -> Tensor:
    """Each quaternion divided by its modulus; rows are stored as four quarters (1, i, j, k)."""
    a, b, c, d = rows.chunk(4, -1)
    modulus = (a * a + b * b + c * c + d * d + 1e-12).sqrt()
    return rows / torch.cat([modulus] * 4, -1)


def hamilton_product(p: Tensor, q: Tensor) -> Tensor:
    """p ⊗ q, coordinate by coordinate. Example: i ⊗ j = k."""
    a, b, c, d = p.chunk(4, -1)
    e, f, g, h = q.chunk(4, -1)
    return torch.cat(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ],
        -1,
    )


def conjugate(rows: Tensor) -> Tensor:
    """The same real parts, the others turned round."""
    real, *imaginary = rows.chunk(4, -1)
    return torch.cat([real, *(-part for part in imaginary)], -1)
