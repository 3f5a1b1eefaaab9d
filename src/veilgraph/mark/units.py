"""Units: what one neighbouring graph adds or removes. Each confidential statement belongs to exactly one.

``statement``   the statement itself (copies of it count as one unit)
``head``        all confidential statements with the same head, e.g. everything about one patient
``group:KEY``   all confidential statements of heads that share the value of the relation KEY (an address, a record, the
                patient of a stay); a head without that value is its own group, and so in the group it names

With ``group``, the value is read from all statements of KEY, of every split (the smallest, if there are several). A
confidential one belongs to the unit of its own head: removing that unit removes whatever it had grouped, so no
statement ever moves from one unit to another.
"""

from __future__ import annotations

import numpy as np

from veilgraph.errors import ConfigError, UnknownNameError
from veilgraph.load import Graph


def check_unit(graph: Graph, unit: str) -> None:
    """Raise unless this is a unit of this graph."""
    if unit in ("statement", "head"):
        return
    if not unit.startswith("group:"):
        raise ConfigError(f"unit must be statement, head or group:RELATION, found {unit!r}")
    if unit.removeprefix("group:") not in graph.relations:
        raise UnknownNameError("relation", unit.removeprefix("group:"), list(graph.relations))


def units(graph: Graph, split: str = "train") -> np.ndarray:
    """The unit of every confidential statement of a split, as an integer (in the order of those statements)."""
    statements = graph.split(split)[graph.secret(split)]
    unit = graph.marks.unit if graph.marks is not None else "statement"
    if unit == "statement":
        return graph.keys(statements)
    if unit == "head":
        return statements[:, 0].astype(np.int64)
    return _groups(graph, unit.removeprefix("group:"))[statements[:, 0]]


def _groups(graph: Graph, key: str) -> np.ndarray:
    """The group of every entity: the value of its key, or itself."""
    groups = np.arange(len(graph.entities), dtype=np.int64)
    named = graph.triples[graph.triples[:, 1] == graph.relations.id(key)].astype(np.int64)
    order = np.lexsort((named[:, 2], named[:, 0]))[::-1]  # of several values the smallest counts
    groups[named[order, 0]] = named[order, 2]
    return groups


def capped(unit_of: np.ndarray, cap: int, rng: np.random.Generator) -> np.ndarray:
    """Which statements a private step may read: at most ``cap`` of each unit, drawn without looking at other units."""
    if not len(unit_of):
        return np.zeros(0, bool)
    order = np.lexsort((rng.random(len(unit_of)), unit_of))
    ordered = unit_of[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    place = np.arange(len(ordered)) - np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    kept = np.zeros(len(unit_of), bool)
    kept[order[place < cap]] = True
    return kept
