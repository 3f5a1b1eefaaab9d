"""RESCAL: a full matrix per relation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from veilgraph.models import kernels
from veilgraph.models.base import LINEAR_SPACE, Model, normal


class RESCAL(Model):
    """A bilinear form with one dimension × dimension matrix per relation."""

    name = "rescal"
    formula = "hᵀ R t"
    citation = "Nickel et al. 2011, A three-way model for collective learning on multi-relational data"
    defaults = {
        "loss": "softmax",
        "optimiser": "adagrad",
        "regulariser": "n3",
        "reciprocal": True,
        "dropout": 0.4,
    }
    search_space = LINEAR_SPACE

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
        return _RowsTimesMatrices.apply(source, matrices.transpose(1, 2) if inverse else matrices, index)  # type: ignore[no-any-return, no-untyped-call]


class _RowsTimesMatrices(torch.autograd.Function):
    """x[b] · M[index[b]], with gradients summed per matrix."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, index: Tensor) -> Tensor:
        matrices = matrices.contiguous()
        ctx.save_for_backward(x, matrices, index)
        out = torch.empty_like(x)
        kernels.rows_times_matrices(
            x.detach().contiguous().numpy(), matrices.detach().numpy(), index.numpy(), out.detach().numpy()
        )
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        x, matrices, index = ctx.saved_tensors
        g = g.contiguous()
        on_x = torch.empty_like(x)
        kernels.rows_times_matrices(
            g.numpy(), matrices.detach().transpose(1, 2).contiguous().numpy(), index.numpy(), on_x.numpy()
        )
        order = torch.argsort(index, stable=True)
        starts = torch.zeros(len(matrices) + 1, dtype=torch.int64)
        starts[1:] = torch.bincount(index, minlength=len(matrices)).cumsum(0)
        on_matrices = torch.empty_like(matrices)
        kernels.outer_sums(
            x.detach().contiguous().numpy(), g.numpy(), order.numpy(), starts.numpy(), on_matrices.numpy()
        )
        return on_x, on_matrices, None
