"""RESCAL: a full matrix per relation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from veilgraph.models import score_kernels
from veilgraph.models.base import LINEAR_SPACE, Model, normal

SKETCH = 1024  # numbers that all pairs of coordinates are sketched by


class RESCAL(Model):
    """A bilinear form with one dimension × dimension matrix per relation."""

    name = "rescal"
    formula = "hᵀ R t"
    citation = "Nickel et al. 2011, A three-way model for collective learning on multi-relational data"
    defaults = {
        "loss": "softmax",
        "optimiser": "adagrad",
        "regulariser": "n3",
        "regulariser_weight": 0.005,
        "reciprocal": False,  # a matrix per relation is plenty: a second one for the way back overfits
        "dropout": 0.4,
        "averaging": 2.0,
    }
    search_space = LINEAR_SPACE
    silent_at_zero = True

    @property
    def relation_width(self) -> int:
        return self.dimension**2

    def initialise(self, entities: int, relations: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        return (
            normal(rng, entities, self.dimension, self.dimension**-0.5 * 0.1),
            normal(rng, relations, self.relation_width, self.dimension**-0.5 * 0.1),
        )

    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        return torch.bmm(head.unsqueeze(1), relation.view(-1, self.dimension, self.dimension)).squeeze(1)

    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        return torch.bmm(relation.view(-1, self.dimension, self.dimension), tail.unsqueeze(2)).squeeze(2)

    def query(self, source: Tensor, relations: Tensor, index: Tensor, inverse: bool) -> Tensor:
        """Without copying a matrix for every example."""
        matrices = relations.view(-1, self.dimension, self.dimension)
        return _RowsTimesMatrices.apply(source, matrices, index, inverse)  # type: ignore[no-any-return, no-untyped-call]

    def link(self, head: Tensor, tail: Tensor) -> Tensor:
        """The product of all pairs of coordinates, sketched: what two statements have in common stays, at a tenth of the size."""
        left, right = self._sketch(head.dtype)
        return (head @ left) * (tail @ right)

    def leads(self, relation: Tensor) -> Tensor:
        left, right = self._sketch(relation.dtype)
        return torch.einsum("nij,ik,jk->nk", relation.view(-1, self.dimension, self.dimension), left, right)

    def _sketch(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        drawing = torch.Generator().manual_seed(0)
        shape = (self.dimension, SKETCH)
        left, right = (torch.randn(shape, generator=drawing, dtype=torch.float64).to(dtype) for _ in range(2))
        return left, right


class _RowsTimesMatrices(torch.autograd.Function):
    """x[b] · M[index[b]], or x[b] · M[index[b]]ᵀ, with gradients summed per matrix."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, index: Tensor, transposed: bool) -> Tensor:
        x = x.detach().contiguous()
        ctx.save_for_backward(x, matrices, index)
        ctx.transposed = transposed
        return _product(x, matrices, index, transposed)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None, None]:  # type: ignore[override]
        x, matrices, index = ctx.saved_tensors
        g = g.contiguous()
        order = torch.argsort(index, stable=True)
        starts = torch.zeros(len(matrices) + 1, dtype=torch.int64)
        starts[1:] = torch.bincount(index, minlength=len(matrices)).cumsum(0)
        on_matrices = torch.empty_like(matrices)
        left, right = (g, x) if ctx.transposed else (x, g)
        score_kernels.outer_sums(
            left.numpy(), right.numpy(), order.numpy(), starts.numpy(), on_matrices.numpy()
        )
        return _product(g, matrices, index, not ctx.transposed), on_matrices, None, None


def _product(x: Tensor, matrices: Tensor, index: Tensor, transposed: bool) -> Tensor:
    out = torch.empty_like(x)
    run = score_kernels.rows_times_transposed if transposed else score_kernels.rows_times_matrices
    run(x.numpy(), matrices.detach().numpy(), index.numpy(), out.numpy())
    return out
