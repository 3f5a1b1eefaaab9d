"""Cutting statements into train, valid and test so that train knows every entity and relation it will be asked about."""

from __future__ import annotations

import numpy as np

from veilgraph.errors import InputError
from veilgraph.load.graph import Graph
from veilgraph.rng import Streams

MODES = ("random", "entities")


def split(
    graph: Graph, *, valid: float = 0.1, test: float = 0.1, mode: str = "random", seed: int = 0
) -> Graph:
    """A graph whose statements are split anew.

    ``random`` holds statements out, but never the last one of an entity or relation, so that train keeps all names.
    ``entities`` holds *entities* out: valid and test get the statements of entities that train never sees (inductive);
    every relation still keeps a statement in train.
    """
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise InputError(
            f"shares must be at least 0 and leave something to train on; found valid={valid}, test={test}"
        )
    if mode not in MODES:
        raise InputError(f"split mode must be one of {', '.join(MODES)}; found {mode!r}")
    statements = np.unique(graph.triples, axis=0)
    statements = statements[Streams(seed).numpy("split").permutation(len(statements))]
    chooser = _random if mode == "random" else _by_entities
    part = chooser(graph, statements, valid, test, seed)
    return graph.with_splits(
        {"train": statements[part == 0], "valid": statements[part == 1], "test": statements[part == 2]}
    )


def _random(graph: Graph, statements: np.ndarray, valid: float, test: float, seed: int) -> np.ndarray:
    """0, 1 or 2 for each (already shuffled) statement."""
    needed = np.zeros(len(statements), bool)  # the first statement of each name stays in train
    for column in ((0, 2), (1,)):
        names = statements[:, column].ravel()
        needed[np.unique(names, return_index=True)[1] // len(column)] = True
    free = np.flatnonzero(~needed)
    held = min(len(free), round(len(statements) * (valid + test)))
    first = round(held * valid / (valid + test)) if held else 0
    part = np.zeros(len(statements), np.int8)
    part[free[:first]] = 1
    part[free[first:held]] = 2
    return part


def _by_entities(graph: Graph, statements: np.ndarray, valid: float, test: float, seed: int) -> np.ndarray:
    count = len(graph.entities)
    held = np.zeros(count, np.int8)
    order = Streams(seed).numpy("split", 1).permutation(count)
    held[order[: round(count * valid)]] = 1
    held[order[round(count * valid) : round(count * valid) + round(count * test)]] = 2
    used, first = np.unique(statements[:, 1], return_index=True)
    del used
    held[statements[first][:, [0, 2]]] = 0  # each relation keeps one statement
    return np.asarray(np.maximum(held[statements[:, 0]], held[statements[:, 2]]))
