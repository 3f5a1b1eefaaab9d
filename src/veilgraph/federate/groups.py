"""Clients that know some of the same entities, as Fed-KE-GCN's thesis divides them: for rehearsing federations that tell labels.

Entities whose labels are learnt from are dealt out evenly; those to be told are at every client. Of all others a client holds, for
six of seven groups, as many as a fair draw between none and all says. It knows every statement between two that it holds, so the same
statement may be at several clients: where clients promise something, what they spend on it adds up.
"""

from __future__ import annotations

import numpy as np

from veilgraph.errors import InputError, UsageError
from veilgraph.federate.divide import check_clients, part_of
from veilgraph.load.graph import Graph
from veilgraph.load.labels import Labels, Words
from veilgraph.rng import Streams

GROUPS, HELD = 7, 6
SHARE = 0.1  # of labelled entities that are learnt from, where the labels do not say


def overlapping(
    graph: Graph, labels: Labels, clients: int, *, types: str | None = None, seed: int = 0
) -> dict[str, tuple[Graph, Words]]:
    """Graphs and labels by client's name. ``types`` is a relation to an entity's type; without it groups are uneven and random.

    Reads confidential data: all of it. Releases: nothing; the curator gives each client its part.
    """
    check_clients(graph, clients)
    rng, nodes = Streams(seed).numpy("split", 3), len(graph.entities)
    group = _by_type(graph, types) if types is not None else _uneven(nodes, rng)
    learnt, told = _folds(labels, nodes, rng)
    if len(learnt) < clients:
        raise InputError(
            f"{len(learnt)} labelled entities to learn from are too few for {clients} clients: use fewer clients."
        )
    dealt = np.array_split(rng.permutation(learnt), clients)
    free = np.ones(nodes, bool)
    free[labels.entity] = False
    members = [np.flatnonzero(free & (group == number)) for number in range(GROUPS)]
    words, parts = labels.words(graph), {}
    for number, own in enumerate(dealt):
        chosen = [members[g] for g in rng.choice(GROUPS, HELD, replace=False)]
        some = [rng.choice(ids, rng.integers(len(ids) + 1), replace=False) for ids in chosen]
        held = np.zeros(nodes, bool)
        held[np.concatenate([own, told, *some])] = True
        splits = {name: rows[held[rows[:, 0]] & held[rows[:, 2]]] for name, rows in graph.splits.items()}
        if not len(splits.get("train", ())):
            raise InputError(
                f"client {number} of {clients} would have no training statement: use fewer clients."
            )
        fold = np.full(nodes, "", "<U5")
        fold[own], fold[told] = "train", "test"
        of = fold[labels.entity].tolist()
        kept: Words = [(entity, label, part) for (entity, label, _), part in zip(words, of) if part]
        parts[f"client{number}"] = part_of(graph, splits, np.flatnonzero(held)), kept
    return parts


def _folds(labels: Labels, nodes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Who is learnt from and who is told: as the labels say, or a tenth at random."""
    if labels.fold is not None:
        learnt = np.unique(labels.entity[labels.fold == "train"])
        return learnt, np.setdiff1d(labels.entity[labels.fold == "test"], learnt)
    labelled = np.unique(labels.entity)
    drawn = rng.random(len(labelled)) < SHARE
    return labelled[drawn], labelled[~drawn]


def _by_type(graph: Graph, relation: str) -> np.ndarray:
    """``[entities]``: the commonest of an entity's types, if it is one of the six commonest; all others are the seventh group."""
    said = graph.triples[graph.triples[:, 1] == graph.relations.id(relation)]
    if not len(said):
        raise UsageError(f"no statement of this graph says a type by {relation!r}.")
    nodes = len(graph.entities)
    common = np.bincount(said[:, 2], minlength=nodes)
    order = np.argsort(common[said[:, 2]], kind="stable")  # the commonest is written last, and stays
    own = np.full(nodes, -1)
    own[said[order, 0]] = said[order, 2]
    names, count = np.unique(own[own >= 0], return_counts=True)
    kept = names[np.argsort(-count, kind="stable")[: GROUPS - 1]]
    group = np.full(nodes, GROUPS - 1)
    for number, name in enumerate(kept.tolist()):
        group[own == name] = number
    return group


def _uneven(nodes: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(GROUPS, nodes, p=rng.dirichlet(np.ones(GROUPS)))
