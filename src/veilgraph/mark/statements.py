"""Confidential statements named one by one: in a file, or by their ids.

Whoever names a statement wants it protected. So nothing that was named is passed over: a name or an id that the graph does not have, a text
that is no triple, a node that nobody can recognise are refused, each in a sentence of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from veilgraph.errors import ConfigError, InputError
from veilgraph.load import Graph, load
from veilgraph.load.graph import BLANK_NODES


def keys_of(graph: Graph, source: str | Path | np.ndarray) -> np.ndarray:
    """The keys of all statements that a file, or an array of ids, names.

    Reads confidential data: which statements there are. Releases: nothing.
    """
    if not isinstance(source, np.ndarray | str | Path):
        raise ConfigError(
            f"statements are a file, or an array of ids [n, 3] (head, relation, tail); found {type(source).__name__}"
        )
    where = "the array of statements" if isinstance(source, np.ndarray) else str(source)
    wanted, count = _of_array(graph, source) if isinstance(source, np.ndarray) else _of_file(graph, source)
    found = np.intersect1d(graph.keys(wanted), graph.keys(graph.triples))
    if missing := count - len(found):
        raise InputError(
            f"{where} names {missing:,} statements that are not in the graph. A confidential statement that is not "
            "found would stay unprotected: check the names (or ids) against the graph's. Literals are statements of graphs that were "
            "loaded with --literals entity, and no others."
        )
    return found


def _of_array(graph: Graph, rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Ids of the graph, and how many statements they name."""
    if rows.ndim != 2 or rows.shape[1] != 3 or not np.issubdtype(rows.dtype, np.integer):
        raise ConfigError(
            "statements in memory are whole numbers in an array of [n, 3] (ids of head, relation, tail); found "
            f"{rows.dtype} in {list(rows.shape)}"
        )
    for column, name, count in (
        (0, "head", len(graph.entities)),
        (1, "relation", len(graph.relations)),
        (2, "tail", len(graph.entities)),
    ):
        least, most = (int(f(rows[:, column], initial=0)) for f in (np.min, np.max))
        if least < 0 or most >= count:
            raise InputError(
                f"the array of statements names the {name} {least if least < 0 else most}, and the graph's go from 0 to {count - 1:,}. "
                "The statements that were meant would stay unprotected: columns are head, relation, tail."
            )
    wanted = np.unique(rows.astype(np.int64), axis=0)
    return wanted, len(wanted)


def _of_file(graph: Graph, source: str | Path) -> tuple[np.ndarray, int]:
    """Those statements of a file whose names the graph has, and how many the file names."""
    named = load(source, literals="entity")  # (what is a literal there may be an entity here)
    _refuse_what_has_no_name(graph, named, source)
    wanted = np.unique(named.triples, axis=0)
    entity, relation = graph.entities.places(named.entities), graph.relations.places(named.relations)
    translated = np.column_stack([entity[wanted[:, 0]], relation[wanted[:, 1]], entity[wanted[:, 2]]])
    return translated[(translated >= 0).all(1)], len(wanted)


def _refuse_what_has_no_name(graph: Graph, named: Graph, source: str | Path) -> None:
    """Raise where a file speaks of nodes whose labels nobody knows, or of texts, which are no statements of a graph."""
    labels = named.extra.get(BLANK_NODES)
    if labels == "numbered":
        raise InputError(
            f"{source} speaks of blank nodes without a label ([], or a format that hides labels): which of the graph's they are cannot be "
            "told, and others would be marked in their place. Give them labels (_:stay07, as in the graph's source), or mark by "
            "relation, type or query."
        )
    if labels == "labels" and BLANK_NODES not in graph.extra and _has_blank_nodes(graph):
        raise InputError(
            f"{source} speaks of blank nodes by their labels, and this graph was saved by a version that numbered them: the same name "
            "may be another node. Load its source again (veil load), then mark."
        )
    if named.descriptions is not None and Path(source).is_file():
        count = sum(text is not None for text in named.descriptions.to_pylist())
        raise InputError(
            f"{source} names {count:,} descriptions (rdfs:comment and the like), which are texts of entities and no statements of a graph: "
            "marking does not protect them. Take them out; a private training reads no description unless --public-descriptions says so."
        )


def _has_blank_nodes(graph: Graph) -> bool:
    return any(name.startswith("_:") for name in graph.entities)
