"""One graph for several clients, to rehearse a federation: every statement goes to one client, none is lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from veilgraph.errors import ConfigError, InputError, UsageError
from veilgraph.load.graph import BLANK_NODES, DECIDED_FROM, HELD_OUT, Graph
from veilgraph.load.vocabulary import Vocabulary
from veilgraph.rng import Streams, uniform

WAYS = ("relation", "entity", "random")
DIVIDED = "which statements are whose: one graph was divided among clients before anything was marked"


def divide(graph: Graph, clients: int, *, by: str = "relation", seed: int = 0) -> dict[str, Graph]:
    """Graphs by client's name, each with the names that its own statements use.

    ``relation``: every relation is at one client (as in FedE). ``entity``: a statement is where its head is. ``random``: a
    statement is anywhere. Splits stay as they are; a client's valid and test keep statements whose names its train has.

    Reads confidential data: all of it. Releases: nothing; the curator gives each client its part.
    """
    if by not in WAYS:
        raise ConfigError(
            f"a graph is divided by one of {', '.join(WAYS)} (and, with labels, groups); found {by!r}."
        )
    check_clients(graph, clients)
    parts = {}
    owner = _owner_of(graph, clients, by, seed)
    for number in range(clients):
        splits = {name: rows[owner(rows) == number] for name, rows in graph.splits.items()}
        if not len(splits.get("train", ())):
            raise InputError(
                f"client {number} of {clients} would have no training statement: use fewer clients."
            )
        parts[f"client{number}"] = part_of(graph, splits, np.unique(splits["train"][:, [0, 2]]))
    return parts


def check_clients(graph: Graph, clients: int) -> None:
    """Raise for what cannot be divided."""
    if graph.marks is not None:
        raise UsageError(
            "divide a graph first and mark the clients' graphs then: marks are each client's own."
        )
    if not 2 <= clients <= 10_000:
        raise ConfigError(f"a federation has 2 to 10,000 clients, found {clients}.")


def _owner_of(graph: Graph, clients: int, by: str, seed: int):  # type: ignore[no-untyped-def]
    """A function from statements to the numbers of their clients."""
    if by == "random":
        return lambda rows: (uniform(graph.keys(rows), seed, "divide") * clients).astype(np.int64)
    column, count = (1, len(graph.relations)) if by == "relation" else (0, len(graph.entities))
    weight = np.bincount(graph.train[:, column], minlength=count)
    order = Streams(seed).numpy("split", 2).permutation(count)
    order = order[np.argsort(-weight[order], kind="stable")]
    place = np.arange(count)
    there_and_back = np.where(place // clients % 2 == 0, place % clients, clients - 1 - place % clients)
    owner = np.empty(count, np.int64)
    owner[order] = there_and_back  # the heaviest ones in turn, so that parts are of about one size
    return lambda rows: owner[rows[:, column]]


def part_of(graph: Graph, splits: dict[str, np.ndarray], entities: np.ndarray) -> Graph:
    """A client's graph: these entities (ids, ascending), the relations of its train, and the statements that speak of both."""
    relations, kept = np.unique(splits["train"][:, 1]), {}
    for name, rows in splits.items():
        known = np.isin(rows[:, [0, 2]], entities).all(1) & np.isin(rows[:, 1], relations)
        rows = rows[known]
        columns = [
            np.searchsorted(ids, rows[:, i]) for i, ids in ((0, entities), (1, relations), (2, entities))
        ]
        kept[name] = np.stack(columns, 1).astype(np.int32)
    extra: dict[str, object] = {DECIDED_FROM: [*graph.decided_from, DIVIDED]}
    if BLANK_NODES in graph.extra:
        extra[BLANK_NODES] = graph.extra[BLANK_NODES]
    if HELD_OUT in graph.extra:
        extra[HELD_OUT] = np.flatnonzero(graph.held_out[entities]).tolist()
    return Graph(
        Vocabulary(graph.entities.array.take(pa.array(entities))),
        Vocabulary(graph.relations.array.take(pa.array(relations)), "relation"),
        kept,
        extra=extra,
    )
