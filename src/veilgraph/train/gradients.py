"""The gradient of one batch, as rows: which rows of which table move, and by how much.

Two ways to meet the wrong answers: ``sampled`` (negatives shared by chunks; separable and generic models) and
``exact`` (every entity is a candidate). Only the composition is differentiated automatically, on gathered rows;
similarities and losses have closed forms. Memory is O(batch · negatives + batch · dimension).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from veilgraph.models import score_kernels
from veilgraph.models.base import GenericModel, Model
from veilgraph.models.parameters import Parameters
from veilgraph.models.prior import Prior
from veilgraph.train.batches import QueryBatch, TripleBatch
from veilgraph.train.losses import Loss
from veilgraph.train.optim import merge
from veilgraph.train.regularisers import penalty_gradient


class RowGradient(NamedTuple):
    """A gradient on some rows of a table (all rows, if ``ids`` is None)."""

    ids: Tensor | None
    values: Tensor


class Gradients(NamedTuple):
    """The mean loss of a batch and its gradients."""

    loss: float
    entities: RowGradient
    relations: RowGradient
    weights: dict[str, Tensor]


@dataclass(frozen=True)
class Objective:
    """What is minimised: a loss and a penalty."""

    loss: Loss
    regulariser: str = "none"
    regulariser_weight: float = 0.0
    reciprocal: bool = False


class _Sides(NamedTuple):
    """Both directions of a batch, tail side first: differentiable queries and the rows they came from."""

    query: Tensor  # [2b, d]
    head: Tensor  # [b, w], leaf
    tail: Tensor  # [b, w], leaf
    relations: Tensor  # [u, w], leaf
    relation_ids: Tensor  # [u]


def sampled(model: Model, p: Parameters, batch: TripleBatch, objective: Objective) -> Gradients:
    """Gradients of a batch against shared negatives."""
    if isinstance(model, GenericModel):
        return _generic(model, p, batch, objective)
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b, (chunks, k) = len(head_ids), batch.negatives.shape
    sides = _queries(model, p, batch, objective.reciprocal)
    query = sides.query.detach()
    target = torch.cat([sides.tail.detach(), sides.head.detach()])
    negative_rows = p.entities.index_select(0, batch.negatives.view(-1)).view(chunks, k, -1)

    positive = model.similarity.pairs(query, target)
    chunked = query.view(chunks, -1, query.shape[1])
    table = model.similarity.table(chunked, negative_rows)
    scale = (
        model.relation_scale.index_select(0, relation).repeat(2) if model.relation_scale is not None else None
    )
    positive, scores = final_scores(positive, table, scale, p, batch)
    value, on_positive, on_negative = objective.loss.coefficients(positive, scores.view(2 * b, k))
    weight = _example_weight(batch, b) * (scale if scale is not None else 1.0)
    on_positive = on_positive * weight
    on_negative = on_negative.mul_(weight.unsqueeze(1)).view(chunks, -1, k)

    on_query = model.similarity.pull_query(chunked, negative_rows, on_negative, table)
    on_negative_rows = model.similarity.pull_candidates(chunked, negative_rows, on_negative, table)
    on_query = on_query.reshape(2 * b, -1) + model.similarity.pull_pairs(query, target, on_positive)
    on_target = model.similarity.pull_pairs_candidate(query, target, on_positive)
    on_head, on_tail, on_relations = torch.autograd.grad(
        sides.query, (sides.head, sides.tail, sides.relations), on_query, materialize_grads=True
    )
    on_tail, on_head = on_tail + on_target[:b], on_head + on_target[b:]
    _penalise(model, objective, batch, sides, on_head, on_tail, on_relations)
    ids, values = merge(
        torch.cat([head_ids, tail_ids, batch.negatives.view(-1)]),
        torch.cat([on_head, on_tail, on_negative_rows.reshape(-1, on_negative_rows.shape[2])]),
    )
    loss = float((value * _example_weight(batch, b)).sum())
    return Gradients(loss, RowGradient(ids, values), RowGradient(sides.relation_ids, on_relations), {})


def exact(
    model: Model, p: Parameters, batch: QueryBatch, objective: Objective, cells: int = 1 << 25
) -> Gradients:
    """Gradients of distinct questions against every entity (softmax or softplus), ``cells`` scores at a time.

    A question with m answers counts m times, at the price of one row (or as much as they are probable).
    """
    relation_ids, index = torch.unique(batch.relation, return_inverse=True)
    source = p.entities.index_select(0, batch.source).requires_grad_()
    relations = p.relations.index_select(0, relation_ids).requires_grad_()
    order, query = _questions(model, batch, source, relations, index)
    scale = None if model.relation_scale is None else model.relation_scale[batch.relation[order]].unsqueeze(1)
    owner, share, each = torch.argsort(order).index_select(0, batch.owner), *_shares(batch)
    on_query, on_entities, total = torch.empty_like(query), torch.zeros_like(p.entities), 0.0
    size = max(1, cells // len(p.entities))
    sort = torch.argsort(owner, stable=True)
    owner, answers, share = owner[sort], batch.answers[sort], share[sort]
    edges = torch.searchsorted(owner, torch.arange(0, len(query) + size, size))
    for i, start in enumerate(range(0, len(query), size)):
        own = owner[edges[i] : edges[i + 1]] - start
        answer, counts = answers[edges[i] : edges[i + 1]], share[edges[i] : edges[i + 1]]
        part = query.detach()[start : start + size].unsqueeze(0)
        table = model.similarity.table(part, p.entities.unsqueeze(0))
        factor = 1.0 if scale is None else scale[start : start + size]
        scores, reused = _seen_by_loss(model, p, table, factor, batch, order[start : start + size])
        value, weights = _against_all(objective.loss, scores, (own, answer, counts, each), reused)
        if scale is not None:
            weights.mul_(factor)
        every, weight = p.entities.unsqueeze(0), weights.unsqueeze(0)
        on_query[start : start + size] = model.similarity.pull_query(part, every, weight, table)[0]
        on_entities += model.similarity.pull_candidates(part, every, weight, table)[0]
        total += value
    on_source, on_relations = torch.autograd.grad(
        query, (source, relations), on_query, materialize_grads=True
    )
    if objective.regulariser_weight:
        count = torch.zeros(len(query)).index_add_(0, owner, share)[torch.argsort(order)].unsqueeze(1)
        pull, much = _penalty(model, objective), objective.regulariser_weight
        on_source = on_source + much * count * pull(source.detach())
        rows = torch.zeros(len(relations), 1).index_add_(0, index, count)
        on_relations += much * rows * pull(relations.detach())
        on_answers = much * share.unsqueeze(1) * pull(p.entities.index_select(0, answers))
        on_entities.index_add_(0, answers, on_answers)
    on_entities.index_add_(0, batch.source, on_source)
    return Gradients(total, RowGradient(None, on_entities), RowGradient(relation_ids, on_relations), {})


def _shares(batch: QueryBatch) -> tuple[Tensor, float]:
    """Each answer's share of the batch, and that of a certain one."""
    if batch.weight is None:
        one = 1 / len(batch.answers)
        return torch.full((len(batch.answers),), one), one
    one = 1 / max(float(batch.weight.sum()), 1e-9)
    return batch.weight * one, one


def _seen_by_loss(
    model: Model,
    p: Parameters,
    table: Tensor,
    factor: Tensor | float,
    batch: QueryBatch,
    questions: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Scores of some questions, scaled, with the prior; and where weights may be written: the Euclidean distance needs its scores again."""
    scaled = not isinstance(factor, float)
    scores = table[0] * factor if scaled else table[0]
    if p.prior is not None:
        scores = scores if scaled else scores.clone()
        _add_prior(p.prior, scores, batch, questions)
    separate = scaled or p.prior is not None or model.similarity.name != "l2"
    return scores, scores if separate else None


def _questions(
    model: Model, batch: QueryBatch, source: Tensor, relations: Tensor, index: Tensor
) -> tuple[Tensor, Tensor]:
    """The order questions are taken in, those asked forwards first, and their query vectors in that order, differentiable."""
    order = torch.argsort(batch.inverse.to(torch.int8), stable=True)
    forward = int((~batch.inverse).sum())
    with torch.enable_grad():
        asked = source if batch.keep is None else source * batch.keep.source
        parts = [
            model.query(asked.index_select(0, rows), relations, index.index_select(0, rows), inverse)
            for rows, inverse in ((order[:forward], False), (order[forward:], True))
            if len(rows)
        ]
        query = torch.cat(parts)
        return order, query if batch.keep is None else query * batch.keep.query


def _add_prior(prior: Prior, scores: Tensor, batch: QueryBatch, questions: Tensor) -> None:
    """Add the prior to the scores of some questions, in place."""
    backward, relation = batch.backward[questions], batch.relation[questions]
    for side, chosen in (("tail", ~backward), ("head", backward)):
        part = scores[chosen]
        prior.add(part, relation[chosen], side)
        scores[chosen] = part


def _queries(model: Model, p: Parameters, batch: TripleBatch, reciprocal: bool) -> _Sides:
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    backward = relation + len(p.relations) // 2 if reciprocal else relation
    relation_ids, index = torch.unique(torch.cat([relation, backward]), return_inverse=True)
    head = p.entities.index_select(0, head_ids).requires_grad_()
    tail = p.entities.index_select(0, tail_ids).requires_grad_()
    relations = p.relations.index_select(0, relation_ids).requires_grad_()
    b, keep = len(batch.triples), batch.keep
    with torch.enable_grad():
        forward_from, backward_from = (
            (head, tail) if keep is None else (head * keep.source[:b], tail * keep.source[b:])
        )
        query = torch.cat(
            [
                model.query(forward_from, relations, index[:b], False),
                model.query(backward_from, relations, index[b:], not reciprocal),
            ]
        )
        if keep is not None:
            query = query * keep.query
    return _Sides(query, head, tail, relations, relation_ids)


def final_scores(
    positive: Tensor, table: Tensor, scale: Tensor | None, p: Parameters, batch: TripleBatch
) -> tuple[Tensor, Tensor]:
    """Scores as the loss sees them: scaled, with the prior, own entities hidden. ``table`` itself may be changed."""
    scores = table
    if scale is not None:
        positive, scores = positive * scale, table * scale.view(len(table), -1, 1)
    if p.prior is not None:
        more, others = prior_scores(p.prior, batch)
        positive, scores = positive + more, scores + others.view_as(scores)
    hide_own(scores, batch)
    return positive, scores


def prior_scores(prior: Prior, batch: TripleBatch) -> tuple[Tensor, Tensor]:
    """What the prior adds to the true answers ``[2b]`` and to the negatives ``[2b, k]``, tail side first."""
    head, relation, tail = batch.triples.unbind(1)
    b, own = len(head), negatives_of_each(batch)
    answers = [prior.gather(relation, "tail", tail[:, None]), prior.gather(relation, "head", head[:, None])]
    others = [prior.gather(relation, "tail", own[:b]), prior.gather(relation, "head", own[b:])]
    return torch.cat(answers).squeeze(1), torch.cat(others)


def negatives_of_each(batch: TripleBatch) -> Tensor:
    """The negatives of each of the 2b examples, ``[2b, k]``: its chunk's."""
    b, (sides, k) = len(batch.triples), batch.negatives.shape
    return batch.negatives.view(sides, 1, k).expand(-1, 2 * b // sides, -1).reshape(2 * b, k)


def hide_own(scores: Tensor, batch: TripleBatch) -> None:
    """Set the scores of negatives that are the statement's own head or tail to −inf."""
    head_ids, tail_ids = batch.triples[:, 0], batch.triples[:, 2]
    source, target = torch.cat([head_ids, tail_ids]), torch.cat([tail_ids, head_ids])
    score_kernels.mask_own(scores.numpy(), batch.negatives.numpy(), source.numpy(), target.numpy())


def _example_weight(batch: TripleBatch, b: int) -> Tensor:
    """What each of the 2b examples counts: 1 / statements, 0 for fillers."""
    if batch.weight is None:
        return torch.full((2 * b,), 1.0 / b)
    return (batch.weight / batch.weight.sum()).repeat(2)


def _penalty(model: Model, objective: Objective) -> Callable[[Tensor], Tensor]:
    """The penalty's gradient; rows that are no entity-like vectors (RotatE's angles) have no complex parts."""
    return lambda rows: penalty_gradient(
        objective.regulariser, rows, model.multiple_of if rows.shape[1] == model.entity_width else 1
    )


def _penalise(
    model: Model,
    objective: Objective,
    batch: TripleBatch,
    sides: _Sides,
    on_head: Tensor,
    on_tail: Tensor,
    on_relations: Tensor,
) -> None:
    """Add the penalty of both directions' rows to the gradients, in place."""
    if not objective.regulariser_weight:
        return
    b = len(batch.triples)
    count = (_example_weight(batch, b)[:b] * objective.regulariser_weight).unsqueeze(1)
    pull = _penalty(model, objective)
    on_head += 2 * count * pull(sides.head.detach())
    on_tail += 2 * count * pull(sides.tail.detach())
    relation = batch.triples[:, 1]
    directions = [relation, relation + objective.reciprocal * _half(sides, relation)]
    rows = pull(sides.relations.detach())
    for ids in directions:
        index = torch.searchsorted(sides.relation_ids, ids.contiguous())
        on_relations += torch.zeros(len(rows), 1).index_add_(0, index, count) * rows


def _half(sides: _Sides, relation: Tensor) -> int:
    """The offset of reciprocal relation ids in this batch."""
    return int(sides.relation_ids[-1] - relation.max())


def _against_all(
    loss: Loss, scores: Tensor, told: tuple[Tensor, Tensor, Tensor, float], out: Tensor | None
) -> tuple[float, Tensor]:
    """The loss of some questions against all entities, and its derivative on each score (written to ``out``).

    ``told``: whose answers, which, the share of each in the batch, and that of a certain one.
    """
    own, answer, counts, each = told
    if loss.name == "softmax":
        weights = torch.softmax(scores, 1, out=out)
        value = -(weights[own, answer].clamp_(min=1e-37).log_() * counts).sum()
        weights.mul_(torch.zeros(len(scores)).index_add_(0, own, counts).unsqueeze(1))
    else:
        value = F.softplus(scores).sum() * each - (scores[own, answer] * counts).sum()
        weights = torch.sigmoid(scores).mul_(each)
    weights.index_put_((own, answer), -counts, accumulate=True)
    return float(value), weights


def _generic(model: GenericModel, p: Parameters, batch: TripleBatch, objective: Objective) -> Gradients:
    """Automatic differentiation on gathered rows, for scorers that are no composition and similarity."""
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b, (chunks, k) = len(head_ids), batch.negatives.shape
    head = p.entities.index_select(0, head_ids).requires_grad_()
    tail = p.entities.index_select(0, tail_ids).requires_grad_()
    backward = relation + len(p.relations) // 2 if objective.reciprocal else relation
    relation_ids, index = torch.unique(torch.cat([relation, backward]), return_inverse=True)
    relations = p.relations.index_select(0, relation_ids).requires_grad_()
    weights = {name: w.detach().requires_grad_() for name, w in p.weights.items()}
    negative_rows = p.entities.index_select(0, batch.negatives.view(-1)).requires_grad_()
    with torch.enable_grad():
        by_chunk = (
            negative_rows.view(chunks, 1, k, -1).expand(-1, 2 * b // chunks, -1, -1).reshape(2 * b, k, -1)
        )
        three = (head, relations.index_select(0, index), tail)
        positive, negative = _generic_scores(model, three, by_chunk, weights, objective.reciprocal)
    table = negative.detach().clone().view(chunks, -1, k)
    final, scores = final_scores(positive.detach(), table, None, p, batch)
    value, on_positive, on_negative = objective.loss.coefficients(final, scores.view(2 * b, k))
    weight = _example_weight(batch, b)
    inputs = [head, tail, relations, negative_rows, *weights.values()]
    gradients = torch.autograd.grad(
        [positive, negative],
        inputs,
        [on_positive * weight, on_negative * weight.unsqueeze(1)],
        materialize_grads=True,
        allow_unused=True,
    )
    on_head, on_tail, on_relations, on_negative_rows = gradients[:4]
    sides = _Sides(positive, head, tail, relations, relation_ids)
    _penalise(model, objective, batch, sides, on_head, on_tail, on_relations)
    ids, values = merge(
        torch.cat([head_ids, tail_ids, batch.negatives.view(-1)]),
        torch.cat([on_head, on_tail, on_negative_rows]),
    )
    loss = float((value * weight).sum())
    shared = dict(zip(weights, gradients[4:]))
    return Gradients(loss, RowGradient(ids, values), RowGradient(relation_ids, on_relations), shared)


def _generic_scores(
    model: GenericModel,
    three: tuple[Tensor, Tensor, Tensor],
    wrong: Tensor,
    weights: dict[str, Tensor],
    reciprocal: bool,
) -> tuple[Tensor, Tensor]:
    """``[2b]`` and ``[2b, k]``: of the true answers and of the wrong ones, tail side first."""
    h, rows, t = (part.unsqueeze(1) for part in three)
    b = len(h)
    r = rows[:b]
    if reciprocal:
        positive = torch.cat([model.score(h, r, t, weights), model.score(t, rows[b:], h, weights)])
        return positive.squeeze(1), model.score(torch.cat([h, t]), rows, wrong, weights)
    positive = model.score(h, r, t, weights).repeat(2, 1)
    negative = [model.score(h, r, wrong[:b], weights), model.score(wrong[b:], r, t, weights)]
    return positive.squeeze(1), torch.cat(negative)
