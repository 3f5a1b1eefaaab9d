"""Cutting statements into train, valid and test so that train knows every entity and relation it will be asked about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veilgraph.errors import InputError
from veilgraph.load.graph import HELD_OUT, Graph
from veilgraph.load.inductive import LEAST, NEIGHBOURS, held_out
from veilgraph.rng import Streams, uniform

MODES = ("random", "entities", "inductive", "latest")


def split(
    graph: Graph, *, valid: float = 0.1, test: float = 0.1, mode: str = "random", seed: int = 0
) -> Graph:
    """A graph whose statements are split anew.

    ``random`` holds statements out, but keeps one of every entity and relation, so that train has all names. Where a
    statement goes depends on itself and the seed alone: what is confidential in a marked graph neither moves others nor is
    kept for its names. (An unmarked one keeps names by any statement: mark before splitting, or take the split as given.)
    ``entities`` holds *entities* out: valid and test get the statements of entities that train never sees; every relation
    still keeps a statement in train. ``inductive`` does so by the published rule, under which nobody who stays is left
    without neighbours and relations stay common (load/inductive.py). Both say who was held out in ``extra``,
    where it is public, and read only unrestricted statements of a marked graph to choose them: mark before splitting.
    ``latest`` holds out the last statements of each head (a user, say) of
    the commonest relation, in the order they were read: the future, where a source is in the order of time. In a marked graph,
    relation, order and names are those of unrestricted statements; a confidential one goes where an unrestricted one in its place would
    (its head's other confidential ones do not count, unless the head is the unit), or, without any beside it, by a coin of its own.

    A graph that is split before it is marked says so in ``decided_from``: a promise takes that split to be public.
    """
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise InputError(
            f"shares must be at least 0 and leave something to train on; found valid={valid}, test={test}"
        )
    if mode not in MODES:
        raise InputError(f"split mode must be one of {', '.join(MODES)}; found {mode!r}")
    return _cut(graph, valid, test, mode, seed).decided(
        f"which statements are held out: split ({mode}) before anything was marked"
        if graph.marks is None
        else f"which statements are held out: split ({mode}) under other marks"
    )


def _cut(graph: Graph, valid: float, test: float, mode: str, seed: int) -> Graph:
    if mode == "latest":
        return _latest(graph, valid, test, seed)
    statements = np.unique(graph.triples, axis=0)
    statements = statements[np.argsort(uniform(graph.keys(statements), seed, "split"), kind="stable")]
    if mode == "random":
        return _parted(graph, statements, _random(graph, statements, valid, test, seed))
    choose = _inductive if mode == "inductive" else _any_entities
    held = choose(
        graph, statements, valid, test, Streams(seed).numpy("split", 1).permutation(len(graph.entities))
    )
    found = _parted(graph, statements, np.maximum(held[statements[:, 0]], held[statements[:, 2]]))
    return replace(found, extra={**found.extra, HELD_OUT: np.flatnonzero(held).tolist()})


def _parted(graph: Graph, statements: np.ndarray, part: np.ndarray) -> Graph:
    """Statements by the number of their split."""
    return graph.with_splits(
        {name: statements[part == i] for i, name in enumerate(("train", "valid", "test"))}
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


def _any_entities(
    graph: Graph, statements: np.ndarray, valid: float, test: float, order: np.ndarray
) -> np.ndarray:
    """0, 1 or 2 for each entity; each relation keeps an unrestricted statement, if it has one."""
    count = len(graph.entities)
    held = np.zeros(count, np.int8)
    held[order[: round(count * valid)]] = 1
    held[order[round(count * valid) : round(count * valid) + round(count * test)]] = 2
    open_ = statements[~graph.is_secret(statements)]
    first = np.unique(open_[:, 1], return_index=True)[1]
    held[open_[first][:, [0, 2]]] = 0
    return held


def _inductive(
    graph: Graph, statements: np.ndarray, valid: float, test: float, order: np.ndarray
) -> np.ndarray:
    """The same by the published rule."""
    count, open_ = len(graph.entities), statements[~graph.is_secret(statements)]
    wanted = [int(count * (valid + test) * share / (valid + test)) if share else 0 for share in (valid, test)]
    held = held_out(open_, count, len(graph.relations), order, *wanted)
    found = [int((held == part).sum()) for part in (1, 2)]
    if found != wanted:
        raise InputError(
            f"only {sum(found):,} of the {sum(wanted):,} entities asked for can be held out: every relation must keep {LEAST} statements, "
            f"and every neighbour more than {NEIGHBOURS} neighbours. Lower --valid and --test, or use --split entities."
        )
    return held


def _latest(graph: Graph, valid: float, test: float, seed: int) -> Graph:
    """The order of statements is kept, in every split; an item that nobody took before stays in train."""
    statements = graph.triples
    statements = statements[np.sort(np.unique(statements, axis=0, return_index=True)[1])]
    secret = graph.is_secret(statements)
    open_ = np.flatnonzero(~secret)
    told = statements[open_] if len(open_) else statements[:0]
    relation = int(np.bincount(told[:, 1], minlength=len(graph.relations)).argmax())
    own = statements[:, 1] == relation
    by_head = graph.marks is not None and graph.marks.unit == "head"
    before, of = _places(statements[:, 0], own & ~secret, own)  # of unrestricted ones: what everybody may see
    counted = own & ~secret
    if by_head:  # all that is confidential about a head comes and goes with it, and moves nothing that is not
        among, all_ = _places(statements[:, 0], own, own)
        hidden = own & secret
        before[hidden], of[hidden] = among[hidden], all_[hidden]
        counted = own
    share = (before + 1) / np.maximum(of + ~counted, 1)
    alone = own & ~counted & (of == 0)
    share[alone] = 1 - uniform(graph.keys(statements[alone]), seed, "split")
    part = np.zeros(len(statements), np.int8)
    part[own & (share > 1 - valid - test)] = 1
    part[own & (share > 1 - test)] = 2
    part[own & counted & (before == 0)] = 0
    part[open_[np.unique(told[:, 2], return_index=True)[1]]] = 0
    return _parted(graph, statements, part)


def _places(heads: np.ndarray, counted: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each of its ``own`` statements how many ``counted`` ones of its head came before, and how many its head has."""
    before, of = np.zeros(len(heads), np.int64), np.zeros(len(heads), np.int64)
    order = np.flatnonzero(own)
    order = order[np.argsort(heads[order], kind="stable")]  # head by head, in the order of time
    if not len(order):
        return before, of
    first = np.flatnonzero(np.r_[True, np.diff(heads[order]) != 0])
    running = np.cumsum(counted[order])
    start = np.r_[0, running][first]
    lengths = np.diff(np.r_[first, len(order)])
    before[order] = running - counted[order] - np.repeat(start, lengths)
    of[order] = np.repeat(np.r_[running[first[1:] - 1], running[-1]] - start, lengths)
    return before, of
