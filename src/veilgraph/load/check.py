"""Integrity of a graph: what is wrong with its statements, with an example, and how to mend it.

Found on every load and reported; mended only when asked (``--fix``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilgraph.load.graph import Graph
from veilgraph.load.vocabulary import Vocabulary


@dataclass(frozen=True)
class Finding:
    """One kind of problem in one split."""

    kind: str  # duplicate | leak | unseen entity | unseen relation | empty relation
    split: str
    count: int
    example: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.split}: {self.count:,} × {self.kind} (e.g. {self.example}); {self.remedy}"


def check(graph: Graph) -> list[Finding]:
    """Everything that is wrong, in words."""
    return [
        Finding(
            kind, split, int(bad.sum()), _example(graph, graph.splits[split][bad][0]), f"--fix drops {what}"
        )
        for kind, split, bad, what, _ in _faults(
            graph, np.ones(len(graph.train), bool), np.zeros(0, np.int64)
        )
    ] + _empty_relations(graph)


def fix(graph: Graph) -> Graph:
    """A graph without duplicates, leaks, statements about what train does not know, and empty relations.

    In a marked graph what train knows is what its unrestricted statements tell; a confidential statement is dropped only where it is
    twice there, and a relation only where no public rule makes it confidential. A graph that is mended before it is marked says so
    in ``decided_from``.
    """
    return _mended(graph).decided(
        "which statements were dropped: mended (--fix) before anything was marked"
        if graph.marks is None
        else "which statements were dropped: mended (--fix) under other marks"
    )


def _mended(graph: Graph) -> Graph:
    hidden = np.zeros(0, np.int64)
    if graph.marks is not None:
        hidden = np.flatnonzero(graph.marks.possible(list(graph.relations)))
    kept = {split: np.ones(len(array), bool) for split, array in graph.splits.items()}
    for _, split, bad, _, by_others in _faults(graph, ~graph.secret("train"), hidden):
        kept[split] &= ~(bad & ~graph.secret(split)) if by_others else ~bad
    splits = {split: array[kept[split]] for split, array in graph.splits.items()}
    told = [array[kept[split] & ~graph.secret(split), 1] for split, array in graph.splits.items()]
    used = np.union1d(np.concatenate(told), hidden).astype(np.int64)
    if len(used) == len(graph.relations):
        return graph.with_splits(splits)
    place = np.zeros(len(graph.relations), np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    renamed = {}
    for split, array in splits.items():
        renamed[split] = np.column_stack([array[:, 0], place[array[:, 1]], array[:, 2]])
    relations = Vocabulary(graph.relations.names(used), "relation")
    marks = graph.with_splits(splits).marks
    return Graph(graph.entities, relations, renamed, graph.descriptions, "", graph.extra, marks)


def _faults(
    graph: Graph, told: np.ndarray, known: Sequence[int] | np.ndarray
) -> list[tuple[str, str, np.ndarray, str, bool]]:
    """(kind, split, which statements, what --fix drops, whether other statements decide it), only where there are any.

    What train knows is what its ``told`` statements say; relations ``known`` beforehand are never unseen.
    """
    faults = []
    train = graph.train[told]
    seen_entities = np.zeros(len(graph.entities), bool)
    seen_entities[train[:, [0, 2]]] = True
    seen_relations = np.zeros(len(graph.relations), bool)
    seen_relations[train[:, 1]] = True
    seen_relations[known] = True
    train_keys = np.sort(graph.keys(graph.train))
    for split, array in graph.splits.items():
        ordered = train_keys if split == "train" else np.sort(graph.keys(array))
        if (ordered[1:] == ordered[:-1]).any():
            faults.append(
                ("duplicate", split, _repeated(graph.keys(array), ordered), "the repetitions", False)
            )
        if split == "train":
            continue
        leaked = _contains(train_keys, graph.keys(array))
        if split == "test" and "valid" in graph.splits:
            valid = np.sort(graph.keys(graph.splits["valid"]))
            leaked |= _contains(valid, graph.keys(array))
        faults.append(("leak (already in an earlier split)", split, leaked, "them here", False))
        expected = seen_entities | graph.held_out  # those are to be told by their descriptions
        unseen = ~(expected[array[:, 0]] & expected[array[:, 2]])
        faults.append(("statement with an entity unseen in train", split, unseen, "them", True))
        faults.append(
            ("statement with a relation unseen in train", split, ~seen_relations[array[:, 1]], "them", True)
        )
    return [fault for fault in faults if fault[2].any()]


def _empty_relations(graph: Graph) -> list[Finding]:
    used = np.bincount(graph.train[:, 1], minlength=len(graph.relations))
    empty = np.flatnonzero(used == 0)
    if not len(empty):
        return []
    name = graph.relations[int(empty[0])]
    return [
        Finding("relation without a statement", "train", len(empty), name, "--fix drops those used nowhere")
    ]


def _contains(ordered: np.ndarray, keys: np.ndarray) -> np.ndarray:
    if not len(ordered):
        return np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[place] == keys)


def _repeated(keys: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """True for every occurrence but the first; ``ordered`` are the same keys, sorted."""
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    where = np.flatnonzero(_contains(twice, keys))  # only these few need to be looked at in order
    again = np.zeros(len(keys), bool)
    again[where] = True
    again[where[np.unique(keys[where], return_index=True)[1]]] = False
    return again


def _example(graph: Graph, triple: np.ndarray) -> str:
    return f"{graph.entities[triple[0]]} {graph.relations[triple[1]]} {graph.entities[triple[2]]}"
