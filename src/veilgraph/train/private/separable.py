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

from typing import NamedTuple

import torch
from torch import Tensor

from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.train.gradients import Objective, Rows, TripleBatch, final_scores
from veilgraph.train.optim import merge
from veilgraph.train.private import kernels
from veilgraph.train.private.clip import Clip, ClippedSum, add_merged, factors, penalty, scaled, squares


class _Parts(NamedTuple):
    """Per-statement gradients before clipping, and how to sum the rest afterwards."""

    head: Tensor  # [b, w]
    tail: Tensor  # [b, w]
    relation: Tensor  # [2b, w]: forward, then backward
    on_negatives: Tensor  # [b] norm of what the statement does to its negatives, both sides
    value: Tensor  # [2b]


def separable_sum(
    model: Model, p: Parameters, batch: TripleBatch, unit: Tensor | None, objective: Objective, clip: Clip
) -> ClippedSum:
    """As ``clipped_sum``, for a composition and a similarity."""
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b, (sides, k) = len(head_ids), batch.negatives.shape
    backward = relation + len(p.relations) // 2 if objective.reciprocal else relation
    head = p.entities.index_select(0, head_ids).requires_grad_()
    tail = p.entities.index_select(0, tail_ids).requires_grad_()
    rows = p.relations.index_select(0, torch.cat([relation, backward])).requires_grad_()
    each = torch.arange(b)
    with torch.enable_grad():
        asked = torch.cat(
            [
                model.query(head, rows[:b], each, False),
                model.query(tail, rows[b:], each, not objective.reciprocal),
            ]
        )
    query, target = asked.detach(), torch.cat([tail.detach(), head.detach()])
    broken = ~torch.isfinite(query).all(1)  # a diverged statement must not spread over the shared negatives
    query = query.masked_fill(broken.unsqueeze(1), 0.0) if broken.any() else query
    negative_rows = p.entities.index_select(0, batch.negatives.view(-1)).view(sides, k, -1)
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
    on_query = on_query + model.similarity.pull_pairs(query, target, on_positive)
    on_target = model.similarity.pull_pairs_candidate(query, target, on_positive)
    on_head, on_tail, on_rows = torch.autograd.grad(
        asked, (head, tail, rows), on_query, materialize_grads=True
    )
    on_head, on_tail = on_head + on_target[b:], on_tail + on_target[:b]
    if objective.regulariser_weight:
        weight = objective.regulariser_weight
        on_head += 2 * weight * penalty(model, objective, head)
        on_tail += 2 * weight * penalty(model, objective, tail)
        on_rows += weight * penalty(model, objective, rows)
    reach = (on_negative * on_negative).sum(1).sqrt_() * model.similarity.reach(query)
    parts = _Parts(on_head, on_tail, on_rows, torch.hypot(reach[:b], reach[b:]), value)
    if broken.any():
        parts = parts._replace(
            on_negatives=parts.on_negatives.masked_fill(broken.view(2, b).any(0), torch.inf)
        )
    norms = _unit_norms(parts, batch.triples, backward, unit, clip, objective.reciprocal)
    factor = factors(norms, unit, batch, clip)

    entities = relations = None
    if clip.entities:
        both = factor.repeat(2)
        weights = torch.nan_to_num_(on_negative.mul_(both.unsqueeze(1)), 0.0, 0.0, 0.0).view(sides, -1, k)
        on_rows_of_negatives = model.similarity.pull_candidates(chunked, negative_rows, weights, table)
        entities = Rows(
            *merge(
                torch.cat([head_ids, tail_ids, batch.negatives.view(-1)]),
                torch.cat(
                    [
                        scaled(on_head, factor),
                        scaled(on_tail, factor),
                        on_rows_of_negatives.reshape(-1, on_head.shape[1]),
                    ]
                ),
            )
        )
    if clip.relations:
        relations = Rows(*merge(torch.cat([relation, backward]), scaled(on_rows, factor.repeat(2))))
    counted = factor > 0
    loss = float((value.view(2, b).sum(0) * counted).nan_to_num().sum())
    return ClippedSum(entities, relations, clip.norm, loss, norms)


def _unit_norms(
    parts: _Parts, triples: Tensor, backward: Tensor, unit: Tensor | None, clip: Clip, reciprocal: bool
) -> Tensor:
    """The norm of each unit's gradient on the private tables, or a bound on it."""
    b = len(triples)
    head_ids, relation, tail_ids = triples.unbind(1)
    if unit is None:
        total = torch.zeros(b)
        if clip.entities:
            cross = 2 * (parts.head * parts.tail).sum(1) * (head_ids == tail_ids)
            total += squares(parts.head) + squares(parts.tail) + cross + parts.on_negatives**2
        if clip.relations:
            ahead, behind = parts.relation[:b], parts.relation[b:]
            total += squares(ahead) + squares(behind) if reciprocal else squares(ahead + behind)
        return total.clamp_(min=0).sqrt_()
    count = int(unit.max()) + 1 if len(unit) else 0
    total = torch.zeros(count)
    if clip.entities:
        ids = torch.cat([head_ids, tail_ids])
        add_merged(total, unit.repeat(2), ids, torch.cat([parts.head, parts.tail]))
        total += torch.zeros(count).index_add_(0, unit, parts.on_negatives) ** 2
    if clip.relations:
        add_merged(total, unit.repeat(2), torch.cat([relation, backward]), parts.relation)
    return total.sqrt_()
