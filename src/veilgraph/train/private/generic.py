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
from veilgraph.train.gradients import Objective, TripleBatch, final_scores, negatives_of_each
from veilgraph.train.private import kernels
from veilgraph.train.private.clip import Clip, ClippedSum, Into, add_merged, factors, merged, penalty


def generic_sum(
    model: GenericModel,
    p: Parameters,
    batch: TripleBatch,
    unit: Tensor | None,
    objective: Objective,
    clip: Clip,
    into: Into,
) -> ClippedSum:
    """As ``clipped_sum``, for any scorer."""
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b, (sides, k) = len(head_ids), batch.negatives.shape
    backward = relation + len(p.relations) // 2 if objective.reciprocal else relation
    own = negatives_of_each(batch)
    head = p.entities.index_select(0, head_ids).requires_grad_()
    tail = p.entities.index_select(0, tail_ids).requires_grad_()
    rows = p.relations.index_select(0, torch.cat([relation, backward])).requires_grad_()
    wrong = p.entities.index_select(0, own.reshape(-1)).view(2 * b, k, -1).requires_grad_()
    with torch.enable_grad():
        h, t, r = head.unsqueeze(1), tail.unsqueeze(1), rows.unsqueeze(1)
        if objective.reciprocal:
            positive = torch.cat([model.score(h, r[:b], t, p.weights), model.score(t, r[b:], h, p.weights)])
            negative = model.score(torch.cat([h, t]), r, wrong, p.weights)
        else:
            positive = torch.cat([model.score(h, r[:b], t, p.weights), model.score(h, r[b:], t, p.weights)])
            negative = torch.cat(
                [model.score(h, r[:b], wrong[:b], p.weights), model.score(wrong[b:], r[b:], t, p.weights)]
            )
    table = negative.detach().clone().view(sides, -1, k)
    final, scores = final_scores(positive.detach().squeeze(1), table, None, p, batch)
    if unit is not None:
        kernels.hide_unit(
            scores.numpy(),
            batch.negatives.numpy(),
            head_ids.numpy(),
            tail_ids.numpy(),
            unit.numpy(),
        )
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

    owner = torch.arange(b) if unit is None else unit
    count = int(owner.max()) + 1 if len(owner) else 0
    total = torch.zeros(count)
    entity_ids = torch.cat([head_ids, tail_ids, own.reshape(-1)])
    entity_rows = torch.cat([on_head, on_tail, on_wrong.reshape(2 * b * k, -1)])
    whose = torch.cat([owner, owner, owner.repeat(2).repeat_interleave(k)])
    if clip.entities:
        add_merged(total, whose, entity_ids, entity_rows)
    relation_ids = torch.cat([relation, backward])
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
    loss = float((value.view(2, b).sum(0) * (factor > 0)).nan_to_num().sum())
    return ClippedSum(entities, relations, clip.norm, loss, norms)
