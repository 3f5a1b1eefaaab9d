"""What every statement of a batch pulls at, before anything is clipped: shared by sums on tables and on projections.

A statement's gradient is computed from its own rows and the shared negatives alone, in the same order of operations wherever it
stands in its batch (tests/privacy/test_hostile_tables.py compares bit by bit): neighbouring graphs differ by one gradient, not
by everybody's rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import Objective, final_scores
from veilgraph.train.private import clip_kernels
from veilgraph.train.private.clip import penalty

LARGEST = 1e15  # squares of it can be added up in single precision


class Pulls(NamedTuple):
    """Gradients of b statements on their own rows, and the numbers on their negatives."""

    value: Tensor  # [2b] losses, tail side first
    query: Tensor  # [2b, w]
    broken: Tensor | None  # [2b] which queries are not made of numbers; None: all are
    head: Tensor  # [b, w]
    tail: Tensor  # [b, w]
    relations: list[Tensor]  # [b, w] of the relation, and of its reciprocal if there is one
    on_negative: Tensor  # [2b, k]
    negatives: Tensor  # [sides, k, w] their rows
    table: Tensor  # [sides, 2b / sides, k] what a similarity needs of its scores again

    def on_candidates(self, model: Model) -> Tensor:
        """``[sides · k, w]`` float64: what the negatives are pulled by, with the numbers as they are now.

        Here statements are added up, and in single precision one more of them would change how the sums of all others are rounded: with
        large rows that lie close together, and a hundred thousand statements, by more than a clip norm.
        """
        sides, k, width = self.negatives.shape
        chunked, weights = self.query.view(sides, -1, width), self.on_negative.view(sides, -1, k)
        wide = (part.double() for part in (chunked, self.negatives, weights, self.table))
        return model.similarity.pull_candidates(*wide).reshape(sides * k, width)


def pulls(
    model: Model, p: Parameters, batch: TripleBatch, unit: Tensor | None, objective: Objective
) -> Pulls:
    """The gradients of each statement; negatives that are of its own unit are hidden from it (``unit`` None: of itself)."""
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b, (sides, k) = len(head_ids), batch.negatives.shape
    backward = relation + len(p.relations) // 2 if objective.reciprocal else relation
    head, tail = (
        rows_of(p.entities, head_ids).requires_grad_(),
        rows_of(p.entities, tail_ids).requires_grad_(),
    )
    ahead = rows_of(p.relations, relation).requires_grad_()
    behind = rows_of(p.relations, backward).requires_grad_() if objective.reciprocal else ahead
    back = model.compose if objective.reciprocal else model.compose_inverse
    with torch.enable_grad():
        asked = torch.cat([model.compose(head, ahead), back(tail, behind)])
    query, target = asked.detach(), torch.cat([tail.detach(), head.detach()])
    broken = not_numbers(query)  # a diverged statement must not spread over the shared negatives
    query = query if broken is None else query.masked_fill(broken.unsqueeze(1), 0.0)
    negative_rows = rows_of(p.entities, batch.negatives.view(-1)).view(sides, k, -1)
    positive = model.similarity.pairs(query, target)
    chunked = query.view(sides, -1, query.shape[1])
    table = model.similarity.table(chunked, negative_rows)
    scale = None if model.relation_scale is None else model.relation_scale.index_select(0, relation).repeat(2)
    positive, scores = final_scores(positive, table, scale, p, batch)
    if unit is not None:
        hide_unit(scores, batch, unit)
    value, on_positive, on_negative = objective.loss.coefficients(positive, scores.view(2 * b, k))
    if scale is not None:
        on_positive, on_negative = on_positive * scale, on_negative * scale.unsqueeze(1)

    weights = on_negative.view(sides, -1, k)
    on_query = model.similarity.pull_query(chunked, negative_rows, weights, table).reshape(2 * b, -1)
    on_query = on_query.add_(model.similarity.pull_pairs(query, target, on_positive))
    on_target = model.similarity.pull_pairs_candidate(query, target, on_positive)
    leaves = (head, tail, ahead, behind) if objective.reciprocal else (head, tail, ahead)
    on_head, on_tail, *on_relations = torch.autograd.grad(asked, leaves, on_query, materialize_grads=True)
    on_head, on_tail = on_head + on_target[b:], on_tail + on_target[:b]
    weight = objective.regulariser_weight
    if weight:
        on_head += 2 * weight * penalty(model, objective, head)
        on_tail += 2 * weight * penalty(model, objective, tail)
        for rows, pull in zip(leaves[2:], on_relations):
            pull += (2 / len(on_relations)) * weight * penalty(model, objective, rows)
    return Pulls(value, query, broken, on_head, on_tail, on_relations, on_negative, negative_rows, table)


def hide_unit(scores: Tensor, batch: TripleBatch, unit: Tensor) -> None:
    """Negatives that are entities of any statement of the same unit are no wrong answers: their scores become −inf."""
    head, _, tail = batch.triples.unbind(1)
    clip_kernels.hide_unit(scores.numpy(), batch.negatives.numpy(), head.numpy(), tail.numpy(), unit.numpy())


def rows_of(table: Tensor, ids: Tensor) -> Tensor:
    """Rows to compute with: no number in them is so large that a distance overflows.

    Tables may be somebody else's choice (a federation's server sends them). With 1e36 in a row, a statement about it has a
    distance that is infinite and a factor of zero, zero times infinity is no number, and one statement would show on all the negatives it
    shares. What is cut off here depends on tables alone, not on statements, so that neighbours differ by a clip norm at most.
    """
    return table.index_select(0, ids).clamp_(-LARGEST, LARGEST)


def not_numbers(rows: Tensor) -> Tensor | None:
    """Which rows are not made of numbers; None if all are."""
    return None if math.isfinite(float(rows.sum())) else ~torch.isfinite(rows).all(1)
