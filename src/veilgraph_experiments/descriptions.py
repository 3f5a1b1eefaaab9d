"""What experiments on descriptions measure; and the published simulation of privacy, which protects nobody, as it was."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veilgraph.load import Graph
from veilgraph.rank.metrics import by_novelty, summarise
from veilgraph.rank.popularity import popular_ranks
from veilgraph.rank.ranking import Ranker, Ranks
from veilgraph.run.run import Run

EDGES = (0, 5, 20, 100)  # statements about the rarer entity of a test statement
BATCH, WIDTH, DIMENSION, RATE = 1024, 128, 128, 2e-3


def novel(run: Run, graph: Graph, more: Mapping[str, Any]) -> dict[str, Any]:
    """Filtered ranks of statements about new entities, apart by which end is new."""
    found = run.evaluate("test", graph=graph)
    return {**found, "seconds": sum(line["seconds"] for line in run.trace)}


def popular(run: None, graph: Graph, more: Mapping[str, Any]) -> dict[str, Any]:
    """The same of the answers that are most usual for a relation: what a model must beat."""
    ranks = popular_ranks(graph)
    return {
        **summarise(ranks.rank, ranks.candidates),
        **by_novelty(ranks, graph.train, len(graph.entities)),
        "seconds": 0.0,
    }


def degrees(run: Run, graph: Graph, more: Mapping[str, Any]) -> dict[str, Any]:
    """MRR of the test split, and by how many training statements speak of the rarer end."""
    test = graph.split("test")
    ranks = Ranker(graph.triples, len(graph.relations)).rank(
        run.model, run.parameters, test, reciprocal=bool(run.config.reciprocal)
    )
    known = np.bincount(graph.train[:, [0, 2]].ravel(), minlength=len(graph.entities))
    rarer = np.concatenate([known[test[:, [0, 2]]].min(1)] * 2)
    parts = {}
    for low, high in zip(EDGES, (*EDGES[1:], np.inf)):
        chosen = (rarer > low) & (rarer <= high)
        name = f"{low + 1} to {high:.0f}" if np.isfinite(high) else f"more than {low}"
        parts[name] = {
            **summarise(ranks.rank[chosen], ranks.candidates[chosen]),
            "queries": int(chosen.sum()),
        }
    return {**summarise(ranks.rank, ranks.candidates), "degrees": parts}


def in_batch(run: None, graph: Graph, more: Mapping[str, Any]) -> dict[str, Any]:
    """The published simulation: shuffled batches, wrong answers from the batch, noise on the clipped gradients. No guarantee.

    One statement's entities are the wrong answers of all others in its batch, so that taking it away changes all their gradients: clipping
    each of them bounds nothing. Batches of 1,024 instead of 64, and our encoder. Nothing of it can be saved as a run.
    """
    from veilgraph import models
    from veilgraph.models import text
    from veilgraph.models.parameters import Parameters
    from veilgraph.models.text.encoders.base import projection_of
    from veilgraph.models.text.rows import read
    from veilgraph.noise.gauss import source
    from veilgraph.train import losses, optim
    from veilgraph.train.batches import TripleBatch
    from veilgraph.train.gradients import Objective
    from veilgraph.train.private.clip import Clip, How
    from veilgraph.train.private.projection import described_sum
    from veilgraph.train.rows.text import plain

    began, rng = time.perf_counter(), np.random.default_rng(more["seed"])
    given = graph.descriptions.to_pylist()
    texts = [one or plain(name) for name, one in zip(graph.entities, given)]
    features = read(text.encoder(more["text"]), texts, WIDTH)[0]
    features = torch.cat([features, torch.ones(len(features), 1)], 1)
    model = models.create("complex", DIMENSION)
    projection = projection_of(features[:, :-1], DIMENSION, rng)
    relations = model.initialise(1, 2 * len(graph.relations), rng)[1]
    objective, clip = Objective(losses.create("softmax", 1.0, 1.0, 0), reciprocal=True), Clip(1.0)
    noise = source(threads=1)
    optimisers = {name: optim.create("adam", table) for name, table in (("p", projection), ("r", relations))}
    train = torch.from_numpy(graph.train.astype(np.int64))
    for _ in range(int(more["epochs"])):
        for chosen in torch.split(torch.from_numpy(rng.permutation(len(train))), BATCH):
            statements = train[chosen]
            ids, place = torch.unique(statements[:, [0, 2]].T.reshape(-1), return_inverse=True)
            own, b = features[ids], len(statements)
            local = torch.stack([place[:b], statements[:, 1], place[b:]], 1)
            batch = TripleBatch(local, torch.stack([place[b:], place[:b]]))
            found = described_sum(
                How(model, objective, clip), Parameters(own @ projection, relations), own, batch, None
            )
            for name, table, rows in (("p", projection, found.entities), ("r", relations, found.relations)):
                assert rows is not None
                assert rows.ids is not None
                out = torch.from_numpy(noise.normal(*table.shape)).mul_(float(more["noise"]))
                out.index_add_(0, rows.ids, rows.values)
                optimisers[name].update(table, None, out.div_(b).float(), RATE)
    test = graph.split("test")
    p = Parameters(features @ projection, relations)
    ranks: Ranks = Ranker(graph.triples, len(graph.relations)).rank(model, p, test, reciprocal=True)
    return {
        **summarise(ranks.rank, ranks.candidates),
        **by_novelty(ranks, graph.train, len(graph.entities)),
        "epsilon": None,
        "guarantee": "as published, not differentially private",
        "seconds": time.perf_counter() - began,
    }
