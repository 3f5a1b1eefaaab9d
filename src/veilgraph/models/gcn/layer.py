"""One convolution: messages that are gradients of a score, carried over by a matrix for each relation, summed at the nodes.

m_v = α/deg(v) · Σ W_r · ∂f/∂h_v over the edges at v,   h_v ← σ(m_v + W_0 h_v)
m_r = α/|r|    · Σ ∂f/∂h_r over the edges of r,          h_r ← σ(W_rel (m_r + h_r))

(Yu et al. 2021, arXiv 2011.01397.) Edges are ordered by relation, so that carrying over is one matrix product per relation. Where all
relations share one matrix, messages are summed first and carried over once per node.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from veilgraph.models.gcn.edges import Edges
from veilgraph.models.gcn.scores import Dot, Score

SHARED, PER_RELATION, BASES, SCALED = "shared", "relation", "bases", "scaled"
WEIGHTS = (SHARED, PER_RELATION, BASES, SCALED)


class Carry(nn.Module):
    """The matrices W_r: one for all (shared), one each (relation), mixtures of some (bases), one times a number each (scaled)."""

    def __init__(self, kind: str, width: int, out: int, relations: int, bases: int) -> None:
        super().__init__()
        count = {SHARED: 1, PER_RELATION: relations, BASES: bases, SCALED: 1}[kind]
        self.kind, self.relations = kind, relations
        self.matrices = nn.Parameter(_glorot(count, width, out))
        mix = torch.empty(relations, bases).normal_(std=1 / math.sqrt(bases)) if kind == BASES else None
        if kind == SCALED:
            mix = torch.ones(relations, 1)
        self.mix = nn.Parameter(mix) if mix is not None else None

    @property
    def of_relations(self) -> Tensor:
        """``[relations, width, out]``"""
        if self.mix is not None:
            return torch.einsum("rb,bij->rij", self.mix, self.matrices)
        return self.matrices if self.kind == PER_RELATION else self.matrices.expand(self.relations, -1, -1)

    def forward(self, rows: Tensor, starts: list[int]) -> Tensor:
        """``[edges, width]`` → ``[edges, out]``, edges ordered by relation."""
        matrices = self.of_relations
        parts = [rows[a:b] @ matrices[r] for r, (a, b) in enumerate(pairwise(starts)) if b > a]
        return torch.cat(parts) if parts else rows.new_zeros(0, matrices.shape[2])


class Convolution(nn.Module):
    """``[nodes, width]``, ``[relations, width]`` → the same with ``out`` columns.

    ``both_ways`` has matrices of their own for messages against an edge's direction; ``moves_relations`` is what KE-GCN adds to
    CompGCN. Where ``by_others`` is set, a node's own row has no part in its new one, neither by itself nor in the messages it hears.
    """

    def __init__(
        self,
        score: Score,
        width: int,
        out: int,
        relations: int,
        *,
        weights: str = SHARED,
        bases: int = 0,
        alpha: float = 0.5,
        both_ways: bool = False,
        uses_relations: bool = True,
        moves_relations: bool = True,
        by_others: bool = False,
        chunk: int | None = None,
    ) -> None:
        super().__init__()
        self.by_others = by_others
        self.score, self.alpha, self.chunk = score, alpha, chunk
        self.uses_relations, self.moves_relations = uses_relations, moves_relations
        self.into = Carry(weights, width, out, relations, bases)
        self.back = Carry(weights, width, out, relations, bases) if both_ways else self.into
        self.own = nn.Parameter(_glorot(1, width, out)[0])
        self.relation = nn.Parameter(_glorot(1, width, out)[0]) if uses_relations else None

    def forward(self, nodes: Tensor, relations: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        sums, moved = self._messages(nodes, relations, edges)
        out = self.alpha * sums / edges.degree.clamp(min=1).unsqueeze(1)
        if not self.by_others:
            out = out + nodes @ self.own
        if self.relation is None:
            return out, relations.new_zeros(len(relations), out.shape[1])
        if self.moves_relations:
            relations = relations + self.alpha * moved / edges.count.clamp(min=1).unsqueeze(1)
        return out, relations @ self.relation

    def _messages(self, nodes: Tensor, relations: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        """``[nodes, out]`` sums of carried messages, ``[relations, width]`` sums of gradients on relations."""
        if self.chunk is None or len(edges) <= self.chunk:
            return self._of(nodes, relations, edges)
        total: tuple[Tensor, Tensor] | None = None
        for part in edges.parts(self.chunk):  # what a part needs again for its derivative is computed again
            found: Any = checkpoint(self._of, nodes, relations, part, use_reentrant=False)
            total = found if total is None else (total[0] + found[0], total[1] + found[1])
        assert total is not None
        return total

    def _of(self, nodes: Tensor, relations: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        if isinstance(self.score, Dot) and self.into.kind != SHARED and not self.uses_relations:
            matrices = torch.cat([self.into.of_relations, self.back.of_relations])
            return edges.neighbours.carried(nodes, matrices), relations.new_zeros(relations.shape)
        head, tail = edges.at_head.take(nodes), edges.at_tail.take(nodes)
        if self.uses_relations:
            row = edges.of_relation.take(relations)
        else:
            row = nodes.new_zeros(1, 1).expand(len(edges), nodes.shape[1])  # no memory, no work
        at_head, at_relation, at_tail = self.score.gradients(head, row, tail)
        if self.by_others:
            at_head = self.score.gradients(torch.zeros_like(head), row, tail)[0]
            at_tail = self.score.gradients(head, row, torch.zeros_like(tail))[2]
        if self.into.kind == SHARED:
            into, back = self.into.matrices[0], self.back.matrices[0]
            if into is back:
                sums = (edges.at_tail.sum(at_tail) + edges.at_head.sum(at_head)) @ into
            else:
                sums = edges.at_tail.sum(at_tail) @ into + edges.at_head.sum(at_head) @ back
        else:
            sums = edges.at_tail.sum(self.into(at_tail, edges.starts))
            sums = sums + edges.at_head.sum(self.back(at_head, edges.starts))
        if not (self.uses_relations and self.moves_relations):
            return sums, relations.new_zeros(relations.shape)
        return sums, edges.of_relation.sum(at_relation)


def _glorot(count: int, width: int, out: int) -> Tensor:
    bound = math.sqrt(6 / (width + out))
    return torch.empty(count, width, out).uniform_(-bound, bound)
