"""What an experiment can measure of a run. Each returns plain data; all are for the curator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from veilgraph.attack.membership.pool import matched
from veilgraph.attack.standing import standing
from veilgraph.load import Graph
from veilgraph.run.run import Run
from veilgraph_experiments.descriptions import degrees, in_batch, novel, popular
from veilgraph_experiments.federations import counts, federation, listening
from veilgraph_experiments.labelled import labels

FIGURES = ("mrr", "mr", "hits@1", "hits@3", "hits@10", "chance_mrr")


def link(run: Run, graph: Graph, more: dict[str, Any]) -> dict[str, Any]:
    """Filtered ranks of the test split: all, confidential and unrestricted."""
    found = run.evaluate("test", graph=graph)
    parts = {kind: found[kind] for kind in ("confidential", "unrestricted") if kind in found}
    return {
        **{key: found[key] for key in FIGURES},
        **{kind: {key: part[key] for key in FIGURES} for kind, part in parts.items()},
    }


def trace(run: Run, graph: Graph, more: dict[str, Any]) -> dict[str, Any]:
    """Loss and ε after every epoch."""
    keys = ("epoch", "loss", "private_loss", "epsilon")
    return {"trace": [{key: line.get(key) for key in keys} for line in run.trace]}


def ranks(run: Run, graph: Graph, more: dict[str, Any]) -> dict[str, Any]:
    """Tail ranks of confidential training statements, and of held-out ones, each matched with one of them."""
    found = matched(graph, int(more.get("count", 1000)), np.random.default_rng(0))
    ids = torch.from_numpy(found.statements.astype(np.int64))
    _, rank = standing(run.model, run.parameters, ids, "tail", bool(run.config.reciprocal))
    parts = {"members": rank[found.member], "non_members": rank[~found.member]}
    return {"ranks": {name: [int(value) for value in part] for name, part in parts.items()}}


def one_rank(run: Run, graph: Graph, more: dict[str, Any]) -> dict[str, Any]:
    """The tail rank of statements named by their ids."""
    ids = torch.tensor(more["statements"], dtype=torch.int64).reshape(-1, 3)
    _, rank = standing(run.model, run.parameters, ids, "tail", bool(run.config.reciprocal))
    return {"rank": [int(value) for value in rank]}


def clusters(run: Run, graph: Graph, more: dict[str, Any]) -> dict[str, Any]:
    """k-means clusters of the entities whose names begin with ``prefix``, for several k."""
    from scipy.cluster.vq import kmeans2

    chosen = [i for i, name in enumerate(graph.entities) if name.startswith(str(more["prefix"]))]
    rows = run.parameters.entities[chosen].double().numpy()
    rows = rows - rows.mean(0)
    return {
        "clusters": {
            str(k): [int(label) for label in kmeans2(rows, k, iter=50, minit="++", seed=0)[1]]
            for k in more["ks"]
        }
    }


def lists(run: Run | None, graph: Graph, more: dict[str, Any]) -> dict[str, Any]:
    """What an attacker learns from lists, by sanitiser; of a simple recommender, or of a run."""
    from veilgraph.attack.attribute.frontier import points
    from veilgraph.attack.attribute.knowledge import knowledge_of
    from veilgraph.recommend import Offers, offers_of
    from veilgraph.recommend.baselines import BASELINES
    from veilgraph.recommend.catalogue import catalogue
    from veilgraph.recommend.offers import relation_of, scaled, table_of
    from veilgraph.sanitise.people import Attribute

    number = relation_of(graph, more["relation"])
    listed = catalogue(graph.entities, more["listed"])
    users, items, taken = table_of(graph, number, ("train", "valid"), listed)
    if run is None:
        offers = Offers(users, items, scaled(BASELINES[more["recommender"]](taken)), taken, public=True)
    else:
        splits = ("train", "valid")
        offers = offers_of(run, graph, relation=more["relation"], splits=splits, listed=more["listed"])
        offers = replace(offers, public=True)  # (the films of the collection are known, whoever saw them)
    later = table_of(graph, number, ("test",), listed)[2] & ~taken
    extra = knowledge_of(graph, offers, (more["attribute"], more["relation"]), more["knowledge"])
    keys = ("repeat", "attacker", "top", "seed")
    return {
        "points": points(
            offers,
            Attribute.read(graph, more["attribute"], offers.users),
            extra,
            later,
            more["chains"],
            **{key: more[key] for key in keys},
        )
    }


MEASURES: dict[str, Callable[[Any, Graph, dict[str, Any]], dict[str, Any]]] = {
    "link": link,
    "trace": trace,
    "ranks": ranks,
    "one_rank": one_rank,
    "clusters": clusters,
    "lists": lists,
    "federation": federation,
    "listening": listening,
    "counts": counts,
    "labels": labels,
    "novel": novel,
    "degrees": degrees,
    "in_batch": in_batch,
    "popular": popular,
}
