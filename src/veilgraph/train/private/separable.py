"""The sum of per-unit gradients, each clipped to one norm, without ever writing a per-unit gradient down.

A statement's gradient touches its head, its tail, its relation and the negatives of its chunk. On head, tail and
relation it is a row per statement, which fits in memory. On a negative it is a number times a vector whose norm is
known in closed form (``Similarity.reach``), so its norm needs only the numbers. The clipped sum is then the ordinary
gradient with every statement's numbers scaled.

What makes the norm true, not an under-estimate:

- rows met twice by one statement are merged before the norm (head = tail; both directions of a relation);
- a negative equal to an entity of the statement's own unit is masked for that statement;
- the negatives of one statement are distinct, those of its two sides too (``negatives.draw_two_sides``);
- a unit of several statements: rows of its own entities and relations are merged exactly; the parts on negatives are
  added norm by norm, which is never less than the norm of their sum;
- a slack of 1e-4 covers rounding; a gradient that is not a number counts as zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.train.gradients import Objective, TripleBatch, final_scores
from veilgraph.train.private import kernels
from veilgraph.train.private.clip import Clip, ClippedSum, Into, add_merged, factors, merged, penalty

LARGEST = 1e15  # squares of it can be added up in single precision


class _Parts(NamedTuple):
    """The gradient of each statement, before clipping."""

    head: Tensor  # [b, w]
    tail: Tensor  # [b, w]
    relations: list[Tensor]  # [b, w] of the relation, and of its reciprocal if there is one
    on_negative: Tensor  # [2b, k], a number for every negative, to be multiplied with a vector of norm …
    reach: Tensor  # [2b]


def separable_sum(
    model: Model,
    p: Parameters,
    batch: TripleBatch,
    unit: Tensor | None,
    objective: Objective,
    clip: Clip,
    into: Into,
) -> ClippedSum:
    """As ``clipped_sum``, for a composition and a similarity."""
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
        kernels.hide_unit(
            scores.numpy(), batch.negatives.numpy(), head_ids.numpy(), tail_ids.numpy(), unit.numpy()
        )
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
    if objective.regulariser_weight:
        weight = objective.regulariser_weight
        on_head += 2 * weight * penalty(model, objective, head)
        on_tail += 2 * weight * penalty(model, objective, tail)
        for rows, pull in zip(leaves[2:], on_relations):
            pull += (2 / len(on_relations)) * weight * penalty(model, objective, rows)
    reach = model.similarity.reach(query)
    if broken is not None:
        reach = reach.masked_fill(broken, torch.inf)
    parts = _Parts(on_head, on_tail, on_relations, on_negative, reach)
    norms, factor = (_clip_statements if unit is None else _clip_units)(parts, batch, backward, unit, clip)

    entities = relations = None
    if clip.entities:
        on_rows_of_negatives = model.similarity.pull_candidates(chunked, negative_rows, weights, table)
        entities = merged(
            into.entities,
            into.times,
            (head_ids, on_head, factor),
            (tail_ids, on_tail, factor),
            (batch.negatives.view(-1), on_rows_of_negatives.reshape(-1, on_head.shape[1]), None),
        )
    if clip.relations:
        each = ((ids, rows, factor) for ids, rows in zip((relation, backward), on_relations))
        relations = merged(into.relations, into.times, *each)
    counted = value.view(2, b).sum(0) * (factor > 0)
    loss = float(counted.sum())
    loss = loss if math.isfinite(loss) else float(counted.nan_to_num().sum())
    return ClippedSum(entities, relations, clip.norm, loss, norms)


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


def _clip_statements(
    parts: _Parts, batch: TripleBatch, backward: Tensor, unit: Tensor | None, clip: Clip
) -> tuple[Tensor, Tensor]:
    """Norm and factor of each statement; what it does to its negatives is multiplied with the factor, in place."""
    head_ids, _, tail_ids = batch.triples.unbind(1)
    b = len(head_ids)
    norms, factor = torch.empty(b), torch.ones(b) if batch.weight is None else (batch.weight > 0).float()
    kernels.clip_statements(
        parts.head.numpy(),
        parts.tail.numpy(),
        (head_ids == tail_ids).numpy(),
        parts.relations[0].contiguous().numpy(),
        parts.relations[-1][: b * (len(parts.relations) - 1)].contiguous().numpy(),
        parts.on_negative.numpy(),
        parts.reach.numpy(),
        (clip.entities, clip.relations),
        clip.norm,
        norms.numpy(),
        factor.numpy(),
    )
    return norms, factor


def _clip_units(
    parts: _Parts, batch: TripleBatch, backward: Tensor, unit: Tensor | None, clip: Clip
) -> tuple[Tensor, Tensor]:
    """The same for units of several statements: a norm for each unit, or a bound on it, and a factor per statement."""
    assert unit is not None
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b, count = len(unit), int(unit.max()) + 1 if len(unit) else 0
    total = torch.zeros(count)
    if clip.entities:
        ids = torch.cat([head_ids, tail_ids])
        add_merged(total, unit.repeat(2), ids, torch.cat([parts.head, parts.tail]))
        reach = torch.linalg.vector_norm(parts.on_negative, dim=1) * parts.reach
        total += torch.zeros(count).index_add_(0, unit, torch.hypot(reach[:b], reach[b:])) ** 2
    if clip.relations:
        ids = torch.cat([relation, backward][: len(parts.relations)])
        add_merged(total, unit.repeat(len(parts.relations)), ids, torch.cat(parts.relations))
    norms = total.sqrt_()
    factor = factors(norms, unit, batch, clip)
    torch.nan_to_num_(parts.on_negative.mul_(factor.repeat(2).unsqueeze(1)), 0.0, 0.0, 0.0)
    return norms, factor
