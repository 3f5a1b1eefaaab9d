"""DistMult: a weighted dot product."""

from __future__ import annotations

from torch import Tensor

from veilgraph.models.base import LINEAR_SPACE, Model


class DistMult(Model):
    """A three-way dot product; the same score in both directions."""

    name = "distmult"
    formula = "Σ h · r · t"
    citation = "Yang et al. 2015, Embedding entities and relations (arXiv 1412.6575)"
    defaults = {"loss": "softmax", "optimiser": "adagrad", "regulariser": "n3", "reciprocal": True}
    search_space = LINEAR_SPACE
    silent_at_zero = True

    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        return head * relation

    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        return tail * relation

    def link(self, head: Tensor, tail: Tensor) -> Tensor:
        return head * tail

    def leads(self, relation: Tensor) -> Tensor:
        return relation
