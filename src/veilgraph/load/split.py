"""Cutting statements into train, valid and test so that train knows every entity and relation it will be asked about."""

from __future__ import annotations

import numpy as np

from veilgraph.errors import InputError
from veilgraph.load.graph import Graph
from veilgraph.rng import Streams, uniform

MODES = ("random", "entities", "latest")


def split(
    graph: Graph, *, valid: float = 0.1, test: float = 0.1, mode: str = "random", seed: int = 0
) -> Graph:
    """A graph whose statements are split anew.

    ``random`` holds statements out, but keeps one of every entity and relation, so that train has all names. Where a
    statement goes depends on itself and the seed alone: what is confidential in a marked graph neither moves others nor is
    kept for its names. (An unmarked one keeps names by any statement: mark before splitting, or take the split as given.)
    ``entities`` holds *entities* out: valid and test get the statements of entities that train never sees (inductive);
    every relation still keeps a statement in train. ``latest`` holds out the last statements of each head (a user, say) of
    the commonest relation, in the order they were read: the future, where a source is in the order of time.
    """
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise InputError(
            f"shares must be at least 0 and leave something to train on; found valid={valid}, test={test}"
        )
    if mode not in MODES:
        raise InputError(f"split mode must be one of {', '.join(MODES)}; found {mode!r}")
    if mode == "latest":
        return _latest(graph, valid, test)
    statements = np.unique(graph.triples, axis=0)
    statements = statements[np.argsort(uniform(graph.keys(statements), seed, "split"), kind="stable")]
    chooser = _random if mode == "random" else _by_entities
    part = chooser(graph, statements, valid, test, seed)
    return graph.with_splits(
        {"train": statements[part == 0], "valid": statements[part == 1], "test": statements[part == 2]}
    )


def _random(graph: Graph, statements: np.ndarray, valid: float, test: float, seed: int) -> np.ndarray:
    """0, 1 or 2 for each statement (in the order of their numbers); the last one of each name stays in train."""
    number = uniform(graph.keys(statements), seed, "split")
    part = np.where(number < valid, 1, np.where(number < valid + test, 2, 0)).astype(np.int8)
    part[_naming(graph, statements)] = 0
    return part


def _naming(graph: Graph, statements: np.ndarray) -> np.ndarray:
    """Places of statements that are kept for their names: of every entity and relation the last one that is unrestricted."""
    open_ = np.flatnonzero(~graph.is_secret(statements))
    kept = []
    for columns in ((0, 2), (1,)):
        names = statements[open_][::-1][:, columns].ravel()
        kept.append(open_[len(open_) - 1 - np.unique(names, return_index=True)[1] // len(columns)])
    return np.concatenate(kept)


def _by_entities(graph: Graph, statements: np.ndarray, valid: float, test: float, seed: int) -> np.ndarray:
    count = len(graph.entities)
    held = np.zeros(count, np.int8)
    order = Streams(seed).numpy("split", 1).permutation(count)
    held[order[: round(count * valid)]] = 1
    held[order[round(count * valid) : round(count * valid) + round(count * test)]] = 2
    open_ = statements[~graph.is_secret(statements)]
    first = np.unique(open_[:, 1], return_index=True)[1]
    held[open_[first][:, [0, 2]]] = 0  # each relation keeps an unrestricted statement, if it has one
    return np.asarray(np.maximum(held[statements[:, 0]], held[statements[:, 2]]))


def _latest(graph: Graph, valid: float, test: float) -> Graph:
    """The order of statements is kept, in every split; an item that nobody took before stays in train."""
    statements = graph.triples
    statements = statements[np.sort(np.unique(statements, axis=0, return_index=True)[1])]
    relation = np.bincount(statements[:, 1]).argmax()
    own = np.flatnonzero(statements[:, 1] == relation)
    order = own[np.argsort(statements[own, 0], kind="stable")]  # head by head, in the order of time
    _, first, count = np.unique(statements[order, 0], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(first, count)
    share = (place + 1) / np.repeat(count, count)
    part = np.zeros(len(statements), np.int8)
    part[order[share > 1 - valid - test]] = 1
    part[order[share > 1 - test]] = 2
    needed = np.unique(statements[:, 2], return_index=True)[1]
    part[needed] = 0
    part[order[first]] = 0
    return graph.with_splits(
        {name: statements[part == i] for i, name in enumerate(("train", "valid", "test"))}
    )
