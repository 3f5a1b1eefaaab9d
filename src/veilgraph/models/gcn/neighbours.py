"""Sums of neighbours' rows, each carried over by its relation's matrix: the whole of R-GCN's and W-GCN's messages.

out[v] = Σ_k (Σ_{u heard by v as k} row[u]) · W_k,    k a relation and a direction

A node hears many neighbours as the same k (an author's papers, a class's members), so their rows are summed first, and the matrix
product takes one row per pair of node and k. Nothing as long as the edge list is ever in memory.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from veilgraph.models.gcn.edges import Incidence, sum_rows

if TYPE_CHECKING:
    from veilgraph.models.gcn.edges import Edges


class Neighbours:
    """The pairs of node and k that occur, ordered by k: who is summed into each, and which pairs a node has."""

    def __init__(self, edges: Edges) -> None:
        """Tails hear heads as the relation, heads hear tails as the relation's other direction."""
        head, relation, tail = (part.numpy() for part in (edges.head, edges.relation, edges.tail))
        source, node = np.concatenate([head, tail]), np.concatenate([tail, head])
        kind = np.concatenate([relation, relation + edges.relations])
        keys, self.pair = np.unique(kind * edges.nodes + node, return_inverse=True)
        order = np.argsort(self.pair, kind="stable")
        self.heard = source[order]  # row by row of the pairs
        self.starts = np.searchsorted(self.pair[order], np.arange(len(keys) + 1))
        kinds = np.searchsorted(keys, np.arange(2 * edges.relations + 1) * edges.nodes)
        self.of_kind: list[int] = kinds.tolist()
        self.at_node = Incidence(torch.from_numpy(keys % edges.nodes), edges.nodes)
        hearing = Incidence(torch.from_numpy(source), edges.nodes)
        self.hearing, self.hearing_starts = (
            self.pair[hearing.order],
            hearing.starts,
        )  # pairs that hear each node

    def carried(self, rows: Tensor, matrices: Tensor) -> Tensor:
        """``[nodes, width]``, ``[2 · relations, width, out]`` → ``[nodes, out]``"""
        return _Carried.apply(rows, matrices, self)  # type: ignore[no-any-return, no-untyped-call]

    def product(self, rows: Tensor, matrices: Tensor) -> Tensor:
        """``[pairs, width]`` times the matrix of each pair's k."""
        out = torch.empty(len(rows), matrices.shape[2], dtype=rows.dtype)
        for k, (a, b) in enumerate(pairwise(self.of_kind)):
            if b > a:
                torch.mm(rows[a:b], matrices[k], out=out[a:b])
        return out


class _Carried(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, matrices: Tensor, of: Neighbours) -> Tensor:
        heard = sum_rows(rows, of.heard, of.starts)
        ctx.of = of
        ctx.save_for_backward(heard, matrices)
        return sum_rows(of.product(heard, matrices), of.at_node.order, of.at_node.starts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        of: Neighbours = ctx.of
        heard, matrices = ctx.saved_tensors
        on_pairs = gradient.index_select(0, of.at_node.index)
        on_matrices = torch.zeros_like(matrices)
        for k, (a, b) in enumerate(pairwise(of.of_kind)):
            if b > a:
                torch.mm(heard[a:b].T, on_pairs[a:b], out=on_matrices[k])
        on_heard = of.product(on_pairs, matrices.transpose(1, 2))
        return sum_rows(on_heard, of.hearing, of.hearing_starts), on_matrices, None
