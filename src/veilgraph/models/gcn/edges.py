"""An edge list ordered by relation, and the two things a convolution does with it: take rows to edges, and sum edges to rows.

Both are each other's derivative. Where each row's edges are is looked up once per graph, so that every sum is written by one thread,
in one pass, and neither direction collides.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from veilgraph.models import score_kernels

if TYPE_CHECKING:
    from veilgraph.models.gcn.neighbours import Neighbours


class Edges:
    """``head``, ``relation``, ``tail`` ``[e]``, ordered by relation; ``starts`` ``[relations + 1]`` says where each begins."""

    def __init__(self, triples: np.ndarray, nodes: int, relations: int) -> None:
        ordered = triples[np.argsort(triples[:, 1], kind="stable")].astype(np.int64)
        self.nodes, self.relations = nodes, relations
        self.head, self.relation, self.tail = (
            torch.from_numpy(np.ascontiguousarray(c)) for c in ordered.T.reshape(3, -1)
        )
        counts = torch.bincount(self.relation, minlength=relations)
        self.starts: list[int] = [0, *torch.cumsum(counts, 0).tolist()]
        self.count = counts.float()  # edges of each relation
        self.degree = (
            torch.bincount(self.head, minlength=nodes) + torch.bincount(self.tail, minlength=nodes)
        ).float()
        self.at_head, self.at_tail = Incidence(self.head, nodes), Incidence(self.tail, nodes)
        self.of_relation = Incidence(self.relation, relations)
        self._parts: dict[int, list[Edges]] = {}

    def __len__(self) -> int:
        return len(self.head)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Who hears of whom, where messages are the neighbours' rows; made once."""
        from veilgraph.models.gcn.neighbours import Neighbours

        return Neighbours(self)

    def parts(self, most: int) -> list[Edges]:
        """Edge lists of at most so many edges that together are this one; made once."""
        if most not in self._parts:
            rows = torch.stack([self.head, self.relation, self.tail], 1).numpy()
            self._parts[most] = [
                Edges(rows[i : i + most], self.nodes, self.relations) for i in range(0, len(rows), most)
            ]
        return self._parts[most]


class Incidence:
    """Which row each edge belongs to."""

    def __init__(self, index: Tensor, rows: int) -> None:
        self.index, self.rows = index, rows
        self.starts = np.zeros(rows + 1, np.int64)
        np.cumsum(torch.bincount(index, minlength=rows).numpy(), out=self.starts[1:])

    @cached_property
    def order(self) -> np.ndarray:
        """The edges, row by row."""
        return torch.argsort(self.index, stable=True).numpy()

    def take(self, rows: Tensor) -> Tensor:
        """``[rows, d]`` → ``[edges, d]``: every edge's row."""
        return _Take.apply(rows, self)  # type: ignore[no-any-return, no-untyped-call]

    def sum(self, edges: Tensor) -> Tensor:
        """``[edges, d]`` → ``[rows, d]``: the sum over every row's edges."""
        return _Sum.apply(edges, self)  # type: ignore[no-any-return, no-untyped-call]


def sum_rows(table: Tensor, order: np.ndarray, starts: np.ndarray) -> Tensor:
    """``[len(starts) − 1, d]``: the sum of the rows ``order[starts[u] : starts[u + 1]]``, for each u."""
    out = torch.empty(len(starts) - 1, table.shape[1], dtype=table.dtype)
    score_kernels.sum_rows(table.detach().contiguous().numpy(), order, starts, out.numpy())
    return out


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, incidence: Incidence) -> Tensor:
        ctx.incidence = incidence
        return rows.index_select(0, incidence.index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return ctx.incidence.sum(gradient), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: Tensor, incidence: Incidence) -> Tensor:
        ctx.incidence = incidence
        return sum_rows(edges, incidence.order, incidence.starts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return ctx.incidence.take(gradient), None
