"""Two ways of ranking a client's test statements, always named.

fede      tail only, among the client's own entities (FedE's)
shared    both sides, among all entities of the federation, those included that the client never met (ours)

Both leave out what the client knows.
"""

from __future__ import annotations

import numpy as np
import torch

from veilgraph.load.graph import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rank.metrics import summarise
from veilgraph.rank.ranking import Ranker

PROTOCOLS = ("fede", "shared")


def judge(
    model: Model,
    p: Parameters,
    graph: Graph,
    *,
    reciprocal: bool,
    others: torch.Tensor | None = None,
    split: str = "test",
    most: int | None = None,
) -> dict[str, dict[str, float]]:
    """mrr, hits@1/3/10 and queries by protocol; ``others`` are the rows of entities that are not the client's.

    Reads confidential data: the split. Releases: nothing; figures are for the client.
    """
    statements = graph.split(split)
    if most is not None and len(statements) > most:
        statements = statements[np.sort(np.random.default_rng(0).permutation(len(statements))[:most])]
    ranker = Ranker(graph.triples, len(graph.relations))
    local = ranker.rank(model, p, statements, reciprocal=reciprocal)
    tail = local.side == "tail"
    shared = local
    if others is not None and len(others):
        prior = p.prior.widened(len(others)) if p.prior is not None else None
        wide = Parameters(torch.cat([p.entities, others]), p.relations, p.weights, prior)
        shared = ranker.rank(model, wide, statements, reciprocal=reciprocal)
    return {
        "fede": _figures(local.rank[tail], local.candidates[tail]),
        "shared": _figures(shared.rank, shared.candidates),
    }


def _figures(rank: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
    found = summarise(rank, candidates)
    return {key: float(found[key]) for key in ("mrr", "hits@1", "hits@3", "hits@10")} | {"queries": len(rank)}
