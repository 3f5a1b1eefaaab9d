"""Private steps where entities are made from descriptions: what moves is one projection, and the relations.

A row is (1 − gate) · x P + gate · structure, with x the (public) features and a one, and P the projection with its bias. Gates and
structure rows are learnt from unrestricted statements and held still here. A statement's gradient on P is a sum of few outer products,

    x_head ⊗ g_head + x_tail ⊗ g_tail + u_tail-side ⊗ q_tail-side + u_head-side ⊗ q_head-side,     u = Σ_k a_k x_k over its negatives,

because with a dot product the gradient on a candidate is a number a_k times the query q. Its norm is therefore exact without writing the
gradient down: ‖Σ_i l_i ⊗ r_i‖² = Σ_ij (l_i · l_j)(r_i · r_j), whatever rows coincide. For distances, where candidates pull in directions
of their own, the part on negatives is bounded by Σ_k |a_k| ‖x_k‖ times the largest pull (``Similarity.reach``). A unit of several
statements has at most the sum of their norms. The clipped sum is then the ordinary gradient with every statement's numbers scaled.

Nothing else reads confidential statements: features, negatives and the start of P are functions of public texts and the seed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from veilgraph.models.base import GenericModel, Model
from veilgraph.models.parameters import Parameters
from veilgraph.models.similarity import DOT
from veilgraph.train.batches import TripleBatch
from veilgraph.train.gradients import RowGradient
from veilgraph.train.private.clip import Clip, ClippedSum, How, factors, merged
from veilgraph.train.private.pulls import Pulls, pulls


def described_sum(
    how: How, p: Parameters, features: Tensor, batch: TripleBatch, unit: Tensor | None
) -> ClippedSum:
    """As ``clipped_sum``, on the projection: ``p.entities`` are the rows of the batch's entities, ``features`` what they are made from.

    Reads confidential data: the batch. Releases: nothing; the sum is to be noised by a mechanism.
    """
    model, objective, clip = how
    assert not isinstance(model, GenericModel)
    head_ids, relation, tail_ids = batch.triples.unbind(1)
    b = len(head_ids)
    found = pulls(model, p, batch, None, objective)
    norms = _norms(model, found, features, batch, clip)
    if unit is not None:  # all statements of a unit together have at most the sum of their norms
        norms = torch.zeros(int(unit.max()) + 1 if b else 0).index_add_(0, unit, norms)
    factor = factors(norms, unit, batch, clip).nan_to_num_(0.0)
    entities = relations = None
    if clip.entities:
        torch.nan_to_num_(found.on_negative.mul_(factor.repeat(2).unsqueeze(1)), 0.0, 0.0, 0.0)
        moved = merged(
            None,
            1.0,
            (head_ids, found.head, factor),
            (tail_ids, found.tail, factor),
            (batch.negatives.view(-1), found.on_candidates(model), None),
        )
        assert moved.ids is not None
        total = features.index_select(0, moved.ids).double().T @ moved.values
        entities = RowGradient(torch.arange(len(total)), total)
    if clip.relations:
        ids = (relation, relation + len(p.relations) // 2)  # (its reciprocal, if there is one)
        relations = merged(None, 1.0, *((one, rows, factor) for one, rows in zip(ids, found.relations)))
    return ClippedSum(
        entities, relations, clip.norm, float((found.value.view(2, b).sum(0) * (factor > 0)).sum()), norms
    )


def _norms(model: Model, found: Pulls, features: Tensor, batch: TripleBatch, clip: Clip) -> Tensor:
    """``[b]`` the norm of every statement's gradient on the projection and the relations, or a bound on it."""
    head_ids, _, tail_ids = batch.triples.unbind(1)
    b, (sides, k) = len(head_ids), batch.negatives.shape
    left = [features.index_select(0, ids) for ids in (head_ids, tail_ids)]
    right = [found.head, found.tail]
    weights = found.on_negative.view(sides, -1, k)
    negative_features = features.index_select(0, batch.negatives.view(-1)).view(sides, k, -1)
    more = torch.zeros(b)
    if clip.entities and model.similarity is DOT:
        left += [*(weights @ negative_features).view(2, b, -1)]
        right += [*found.query.view(2, b, -1)]
    elif clip.entities:
        lengths = torch.linalg.vector_norm(negative_features, dim=2)
        reach = (weights.abs() @ lengths.unsqueeze(2)).view(2 * b) * model.similarity.reach(found.query)
        more = reach[:b] + reach[b:]
    squares = torch.zeros(b)
    for rows in found.relations if clip.relations else []:
        squares += rows.square().sum(1)
    if clip.entities:
        squares = squares + (_length(left, right) + more).square()
    norms = squares.sqrt()
    if found.broken is not None:
        norms = norms.masked_fill(found.broken[:b] | found.broken[b:], torch.inf)
    return norms


def _length(left: list[Tensor], right: list[Tensor]) -> Tensor:
    """``[b]``: the norms of Σ_i left_i ⊗ right_i, never less.

    Terms may cancel, and rounding is a share of the terms, not of their sum: what products of this length can lose in single precision is
    added to the square. Example: (1) ⊗ (3) + (1) ⊗ (−3) has norm 0, and comes out as a few hundredths of a percent of 6.
    """
    lefts, rights = torch.stack(left, 1), torch.stack(right, 1)
    products = torch.bmm(lefts, lefts.transpose(1, 2)) * torch.bmm(rights, rights.transpose(1, 2))
    terms = (torch.linalg.vector_norm(lefts, dim=2) * torch.linalg.vector_norm(rights, dim=2)).sum(1)
    lost = 2 * (lefts.shape[2] + rights.shape[2]) * torch.finfo(torch.float32).eps
    return (products.sum((1, 2)).clamp_(min=0) + lost * terms.square()).sqrt_()
