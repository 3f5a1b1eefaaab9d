"""Slow and obvious versions of the engine's kernels, one example at a time, by automatic differentiation."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from veilgraph.models.base import GenericModel, Model
from veilgraph.models.parameters import Parameters
from veilgraph.train.batches import QueryBatch, TripleBatch
from veilgraph.train.gradients import Objective


def score(model: Model, p: Parameters, head: int, relation: int, tail: int) -> Tensor:
    """The score of one statement from the model's formula."""
    h, r, t = p.entities[head][None], p.relations[relation][None], p.entities[tail][None]
    if isinstance(model, GenericModel):
        value = model.score(h[None], r[None], t[None], p.weights)[0, 0]
    else:
        value = model.similarity.pairs(model.compose(h, r), t)[0]
    return value if model.relation_scale is None else value * model.relation_scale[relation]


def one_sided(
    model: Model, p: Parameters, source: int, relation: int, target: int, side: str, reciprocal: bool
) -> Tensor:
    """The score of one statement as the engine asks for it from one side."""
    if side == "tail":
        return score(model, p, source, relation, target)
    if reciprocal:
        return score(model, p, source, relation + len(p.relations) // 2, target)
    return score(model, p, target, relation, source)


def loss_of(objective: Objective, positive: Tensor, negative: Tensor) -> Tensor:
    """The loss of one example, from its definition; masked negatives are −inf."""
    loss, k = objective.loss, len(negative)
    if loss.name == "margin":
        return F.relu(loss.margin - positive + negative).sum() / k
    if loss.name == "softplus":
        return F.softplus(-positive) + F.softplus(negative).sum() / k
    if loss.name == "self-adversarial":
        p = torch.softmax(loss.temperature * negative.detach(), 0)
        kept = p > 0
        return -F.logsigmoid(positive + loss.margin) - (p * F.logsigmoid(-negative - loss.margin))[kept].sum()
    correction = math.log((loss.entities - 1) / k)
    return torch.logsumexp(torch.cat([positive[None], negative + correction]), 0) - positive


def penalty(objective: Objective, model: Model, row: Tensor) -> Tensor:
    """The penalty of one row."""
    if objective.regulariser == "l2":
        return (row * row).sum() / 2
    if objective.regulariser == "n3":
        parts = model.multiple_of if len(row) == model.entity_width else 1
        return (row.view(parts, -1) ** 2).sum(0).clamp(min=1e-30).sqrt().pow(3).sum()
    return row.sum() * 0


def sampled(
    model: Model, p: Parameters, batch: TripleBatch, objective: Objective
) -> tuple[float, Tensor, Tensor]:
    """Loss and full-table gradients of a batch with shared negatives."""
    entities, relations = p.entities.clone().requires_grad_(), p.relations.clone().requires_grad_()
    q = Parameters(entities, relations, p.weights)
    b, chunks = len(batch.triples), len(batch.negatives)
    weight = torch.ones(b) if batch.weight is None else batch.weight
    total, value = torch.zeros(()), 0.0
    for i in range(2 * b):
        side = "tail" if i < b else "head"
        h, r, t = batch.triples[i % b].tolist()
        source, target = (h, t) if side == "tail" else (t, h)
        positive = one_sided(model, q, source, r, target, side, objective.reciprocal)
        wrong = [
            torch.tensor(-math.inf)
            if n in (h, t)
            else one_sided(model, q, source, r, n, side, objective.reciprocal)
            for n in batch.negatives[i // (2 * b // chunks)].tolist()
        ]
        loss = loss_of(objective, positive, torch.stack(wrong)) * weight[i % b]
        backward = r + len(relations) // 2 if side == "head" and objective.reciprocal else r
        rows = (entities[h], entities[t], relations[backward])
        cost = sum((penalty(objective, model, row) for row in rows), torch.zeros(())) * weight[i % b]
        total = total + loss + objective.regulariser_weight * cost
        value += float(loss.detach())
    total = total / weight.sum()
    total.backward()
    return value / float(weight.sum()), entities.grad, relations.grad


def exact(
    model: Model, p: Parameters, batch: QueryBatch, objective: Objective
) -> tuple[float, Tensor, Tensor]:
    """Loss and gradients of questions against every entity."""
    entities, relations = p.entities.clone().requires_grad_(), p.relations.clone().requires_grad_()
    q = Parameters(entities, relations, p.weights)
    total, cost = torch.zeros(()), torch.zeros(())
    everyone = range(len(entities))
    for i in range(len(batch.source)):
        source, relation = int(batch.source[i]), int(batch.relation[i])
        side = "head" if bool(batch.inverse[i]) else "tail"
        scores = torch.stack([one_sided(model, q, source, relation, e, side, False) for e in everyone])
        answers = batch.answers[batch.owner == i]
        if objective.loss.name == "softmax":
            total = total + len(answers) * torch.logsumexp(scores, 0) - scores[answers].sum()
        else:
            total = total + F.softplus(scores).sum() - scores[answers].sum()
        for answer in answers.tolist():
            for row in (entities[source], relations[relation], entities[answer]):
                cost = cost + penalty(objective, model, row)
    value = total / len(batch.answers)
    (value + objective.regulariser_weight * cost / len(batch.answers)).backward()
    return float(value.detach()), entities.grad, relations.grad


def per_statement(
    model: Model, p: Parameters, batch: TripleBatch, objective: Objective
) -> list[tuple[Tensor, Tensor]]:
    """Full-table gradients (entities, relations) of every statement alone, both sides, fillers included."""
    b, sides = len(batch.triples), len(batch.negatives)
    size, out = 2 * b // sides, []
    for i in range(b):
        entities, relations = p.entities.clone().requires_grad_(), p.relations.clone().requires_grad_()
        q = Parameters(entities, relations, p.weights)
        h, r, t = batch.triples[i].tolist()
        total = torch.zeros(())
        for side, source, target, row in (("tail", h, t, i // size), ("head", t, h, (b + i) // size)):
            positive = one_sided(model, q, source, r, target, side, objective.reciprocal)
            wrong = torch.stack(
                [
                    torch.tensor(-math.inf)
                    if n in (h, t)
                    else one_sided(model, q, source, r, n, side, objective.reciprocal)
                    for n in batch.negatives[row].tolist()
                ]
            )
            total = total + loss_of(objective, positive, wrong)
        if objective.regulariser_weight:
            backward = r + len(p.relations) // 2 if objective.reciprocal else r
            rows = penalty(objective, model, entities[h]) + penalty(objective, model, entities[t])
            both = penalty(objective, model, relations[r]) + penalty(objective, model, relations[backward])
            total = total + objective.regulariser_weight * (2 * rows + both)
        out.append(torch.autograd.grad(total, (entities, relations), materialize_grads=True))
    return out
