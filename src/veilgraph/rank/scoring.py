"""Scores of questions against all entities, for every model alike."""

from __future__ import annotations

import torch
from torch import Tensor

from veilgraph.models.base import GenericModel, Model
from veilgraph.models.parameters import Parameters


def query_vectors(
    model: Model, p: Parameters, source: Tensor, relation: Tensor, *, side: str, reciprocal: bool
) -> Tensor:
    """The query vector of each question; ``side`` is what is asked for, "tail" or "head"."""
    ids = relation + len(p.relations) // 2 if side == "head" and reciprocal else relation
    unique, index = torch.unique(ids, return_inverse=True)
    rows = p.entities.index_select(0, source)
    return model.query(rows, p.relations.index_select(0, unique), index, side == "head" and not reciprocal)


def score_all(
    model: Model, p: Parameters, source: Tensor, relation: Tensor, *, side: str, reciprocal: bool
) -> Tensor:
    """``[questions, entities]`` scores. Callers choose how many questions fit in memory."""
    with torch.no_grad():
        scores = score_rows(model, p, source, relation, p.entities, side=side, reciprocal=reciprocal)
        if p.prior is not None:
            p.prior.add(scores, relation, side)
        return scores


def score_rows(
    model: Model,
    p: Parameters,
    source: Tensor,
    relation: Tensor,
    rows: Tensor,
    *,
    side: str,
    reciprocal: bool,
) -> Tensor:
    """``[questions, rows]`` scores of these candidate vectors; what counts add to a candidate is not in them."""
    with torch.no_grad():
        if isinstance(model, GenericModel):
            return _generic(model, p, source, relation, rows, side, reciprocal)
        query = query_vectors(model, p, source, relation, side=side, reciprocal=reciprocal)
        scores = model.similarity.table(query.unsqueeze(0), rows.unsqueeze(0))[0]
        if model.relation_scale is not None:
            scores.mul_(model.relation_scale.index_select(0, relation).unsqueeze(1))
        return scores


def _generic(
    model: GenericModel,
    p: Parameters,
    source: Tensor,
    relation: Tensor,
    rows: Tensor,
    side: str,
    reciprocal: bool,
) -> Tensor:
    """Broadcast scoring, a few questions and a stretch of candidates at a time (about 64 MB)."""
    ids = relation + len(p.relations) // 2 if side == "head" and reciprocal else relation
    out = torch.empty(len(source), len(rows))
    stretch = max(1, min(len(rows), (1 << 22) // rows.shape[1]))
    few = max(1, (1 << 22) // (stretch * rows.shape[1]))
    for i in range(0, len(source), few):
        given = p.entities.index_select(0, source[i : i + few]).unsqueeze(1)
        relations = p.relations.index_select(0, ids[i : i + few]).unsqueeze(1)
        for j in range(0, len(rows), stretch):
            candidates = rows[j : j + stretch].unsqueeze(0).expand(len(given), -1, -1)
            pair = (candidates, given) if side == "head" and not reciprocal else (given, candidates)
            out[i : i + few, j : j + stretch] = model.score(pair[0], relations, pair[1], p.weights)
    return out
