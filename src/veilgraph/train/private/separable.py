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

from veilgraph.models.parameters import Parameters
from veilgraph.train.batches import TripleBatch
from veilgraph.train.private import clip_kernels
from veilgraph.train.private.clip import Clip, ClippedSum, How, Into, add_merged, factors, merged
from veilgraph.train.private.pulls import pulls


class _Parts(NamedTuple):
    """The gradient of each statement, before clipping."""

    head: Tensor  # [b, w]
    tail: Tensor  # [b, w]
    relations: list[Tensor]  # [b, w] of the relation, and of its reciprocal if there is one
    on_negative: Tensor  # [2b, k], a number for every negative, to be multiplied with a vector of norm …
    reach: Tensor  # [2b]


def separable_sum(how: How, p: Parameters, batch: TripleBatch, unit: Tensor | None, into: Into) -> ClippedSum:
    """As ``clipped_sum``, for a composition and a similarity."""
    model, objective, clip = how
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b, found = len(head_ids), pulls(model, p, batch, unit, objective)
    backward = relation + len(p.relations) // 2 if objective.reciprocal else relation
    reach = model.similarity.reach(found.query)
    if found.broken is not None:
        reach = reach.masked_fill(found.broken, torch.inf)
    parts = _Parts(found.head, found.tail, found.relations, found.on_negative, reach)
    norms, factor = (_clip_statements if unit is None else _clip_units)(parts, batch, backward, unit, clip)

    entities = relations = None
    if clip.entities:
        entities = merged(
            into.entities,
            into.times,
            (head_ids, found.head, factor),
            (tail_ids, found.tail, factor),
            (batch.negatives.view(-1), found.on_candidates(model), None),
        )
    if clip.relations:
        each = ((ids, rows, factor) for ids, rows in zip((relation, backward), found.relations))
        relations = merged(into.relations, into.times, *each)
    counted = found.value.view(2, b).sum(0) * (factor > 0)
    loss = float(counted.sum())
    loss = loss if math.isfinite(loss) else float(counted.nan_to_num().sum())
    return ClippedSum(entities, relations, clip.norm, loss, norms)


def _clip_statements(
    parts: _Parts, batch: TripleBatch, backward: Tensor, unit: Tensor | None, clip: Clip
) -> tuple[Tensor, Tensor]:
    """Norm and factor of each statement; what it does to its negatives is multiplied with the factor, in place."""
    head_ids, _, tail_ids = batch.triples.unbind(1)
    b = len(head_ids)
    norms, factor = torch.empty(b), torch.ones(b) if batch.weight is None else (batch.weight > 0).float()
    clip_kernels.clip_statements(
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
