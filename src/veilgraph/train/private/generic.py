"""Per-unit gradients of scorers that are no composition and similarity: automatic differentiation, a row per meeting.

Every statement gets its own copy of the rows it reads (its negatives too), so the gradient of the summed loss on the
copies *is* the per-statement gradient; rows met twice are merged before the norm. Memory is statements · negatives ·
width, so the batch is taken in pieces of whole units. Weights shared by all statements are not moved: they stay where
initialisation or unrestricted statements put them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from veilgraph.models.base import GenericModel
from veilgraph.models.parameters import Parameters
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import final_scores, negatives_of_each
from veilgraph.train.private.clip import Clip, ClippedSum, How, Into, add_merged, factors, merged, penalty
from veilgraph.train.private.pulls import hide_unit


def generic_sum(how: How, p: Parameters, batch: TripleBatch, unit: Tensor | None, into: Into) -> ClippedSum:
    """As ``clipped_sum``, for any scorer."""
    model, objective, clip = how
    assert isinstance(model, GenericModel)
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b, (sides, k) = len(head_ids), batch.negatives.shape
    backward = relation + len(p.relations) // 2 if objective.reciprocal else relation
    own = negatives_of_each(batch)
    head = p.entities.index_select(0, head_ids).requires_grad_()
    tail = p.entities.index_select(0, tail_ids).requires_grad_()
    rows = p.relations.index_select(0, torch.cat([relation, backward])).requires_grad_()
    wrong = p.entities.index_select(0, own.reshape(-1)).view(2 * b, k, -1).requires_grad_()
    with torch.enable_grad():
        positive, negative = _scores(model, (head, rows, tail), wrong, p, reciprocal=objective.reciprocal)
    table = negative.detach().clone().view(sides, -1, k)
    final, scores = final_scores(positive.detach().squeeze(1), table, None, p, batch)
    if unit is not None:
        hide_unit(scores, batch, unit)
    value, on_positive, on_negative = objective.loss.coefficients(final, scores.view(2 * b, k))
    on_head, on_tail, on_rows, on_wrong = torch.autograd.grad(
        [positive, negative],
        [head, tail, rows, wrong],
        [on_positive.unsqueeze(1), on_negative],
        materialize_grads=True,
    )
    if objective.regulariser_weight:
        weight = objective.regulariser_weight
        on_head += 2 * weight * penalty(model, objective, head)
        on_tail += 2 * weight * penalty(model, objective, tail)
        on_rows += weight * penalty(model, objective, rows)
    loss = value.view(2, b).sum(0)
    entities = (head_ids, tail_ids, own.reshape(-1)), (on_head, on_tail, on_wrong.reshape(2 * b * k, -1))
    relations = (torch.cat([relation, backward]),), (on_rows,)
    return _clipped(entities, relations, k, unit, batch, clip, into, loss)


def _scores(
    model: GenericModel,
    three: tuple[Tensor, Tensor, Tensor],
    wrong: Tensor,
    p: Parameters,
    *,
    reciprocal: bool,
) -> tuple[Tensor, Tensor]:
    """``[2b, 1]`` and ``[2b, k]``: of the true answers and of the wrong ones, tail side first."""
    h, r, t = (part.unsqueeze(1) for part in three)
    b = len(h)
    if reciprocal:
        positive = torch.cat([model.score(h, r[:b], t, p.weights), model.score(t, r[b:], h, p.weights)])
        return positive, model.score(torch.cat([h, t]), r, wrong, p.weights)
    positive = torch.cat([model.score(h, r[:b], t, p.weights), model.score(h, r[b:], t, p.weights)])
    negative = [model.score(h, r[:b], wrong[:b], p.weights), model.score(wrong[b:], r[b:], t, p.weights)]
    return positive, torch.cat(negative)


Parts = tuple[tuple[Tensor, ...], tuple[Tensor, ...]]  # ids, and the rows that pull at them


def _clipped(
    on_entities: Parts,
    on_relations: Parts,
    k: int,
    unit: Tensor | None,
    batch: TripleBatch,
    clip: Clip,
    into: Into,
    value: Tensor,
) -> ClippedSum:
    """Rows that a unit meets twice are merged before its norm; the sum of all units, each within the clip."""
    b = len(value)
    owner = torch.arange(b) if unit is None else unit
    count = int(owner.max()) + 1 if len(owner) else 0
    total = torch.zeros(count)
    (entity_ids, entity_rows), (relation_ids, on_rows) = (
        (torch.cat(ids), torch.cat(rows)) for ids, rows in (on_entities, on_relations)
    )
    whose = torch.cat([owner, owner, owner.repeat(2).repeat_interleave(k)])
    if clip.entities:
        add_merged(total, whose, entity_ids, entity_rows)
    if clip.relations:
        add_merged(total, owner.repeat(2), relation_ids, on_rows)
    norms = total.sqrt_()
    factor = factors(norms, unit, batch, clip)
    entities = relations = None
    if clip.entities:
        each = torch.cat([factor, factor, factor.repeat(2).repeat_interleave(k)])
        entities = merged(into.entities, into.times, (entity_ids, entity_rows, each))
    if clip.relations:
        relations = merged(into.relations, into.times, (relation_ids, on_rows, factor.repeat(2)))
    loss = float((value * (factor > 0)).nan_to_num().sum())
    return ClippedSum(entities, relations, clip.norm, loss, norms)
