"""ComplEx: DistMult over complex numbers, so that direction matters."""

from __future__ import annotations

from torch import Tensor

from veilgraph.models.base import LINEAR_SPACE, Model, complex_product


class ComplEx(Model):
    """The real part of a three-way product with the tail conjugated."""

    name = "complex"
    formula = "Re Σ h · r · t̄"
    citation = "Trouillon et al. 2016, Complex embeddings (arXiv 1606.06357); N3: Lacroix et al. 2018 (arXiv 1806.07297)"
    multiple_of = 2
    defaults = {"loss": "softmax", "optimiser": "adagrad", "regulariser": "n3", "reciprocal": True}
    search_space = LINEAR_SPACE
    silent_at_zero = True

    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        return complex_product(head, relation)

    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        return complex_product(tail, relation, conjugate=True)

    def link(self, head: Tensor, tail: Tensor) -> Tensor:
        return complex_product(tail, head, conjugate=True)

    def leads(self, relation: Tensor) -> Tensor:
        return relation
