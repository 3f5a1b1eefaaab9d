"""Units: what one neighbouring graph adds or removes. Each confidential statement belongs to exactly one.

``statement``   the statement itself (copies of it count as one unit)
``head``        all confidential statements with the same head, e.g. all that is said *of* one patient (and not what others' statements,
                with the patient as tail, say)
``group:KEY``   all confidential statements of heads that share the value of the relation KEY (an address, a record, the
                patient of a stay); a head without that value is its own group, and so in the group it names

With ``group``, the value is read from all statements of KEY, of every split (the smallest, if there are several). A
confidential one belongs to the unit of its own head: removing that unit removes whatever it had grouped, so no
statement ever moves from one unit to another.

A unit is one class here: whose a statement is, how many of it are usual, how a rehearsal stands in for it, and its words in a certificate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from veilgraph import registry
from veilgraph.errors import ConfigError, UnknownNameError
from veilgraph.load import Graph

PER_UNIT = 10  # statements of one person or group a private step reads, if the curator does not say


class Unit(ABC):
    """What is protected; ``key`` is what follows its name and a colon, if it takes one."""

    name: ClassVar[str]
    words: ClassVar[str]  # who or what, in a certificate: «whether … in the graph»
    words_before: ClassVar[str] = ""  # in certificates up to version 3, if they were others
    cap: ClassVar[int] = PER_UNIT
    keyed: ClassVar[bool] = False
    of_heads: ClassVar[bool] = (
        False  # whether whose a statement is goes by its head: then none is part of its tail's unit
    )
    stand_in: ClassVar[str] = ""  # the unit that plays its part where marks are others; itself, if empty

    def __init__(self, key: str = "") -> None:
        self.key = key

    def refuse(self, graph: Graph) -> None:
        """Raise unless the graph has what the unit goes by."""

    @abstractmethod
    def of(self, graph: Graph, statements: np.ndarray) -> np.ndarray:
        """``[n]`` an integer for each statement: those with the same one are one unit."""


class Statement(Unit):
    """A statement by itself."""

    name = "statement"
    words = "one confidential statement is"
    cap = 1

    def of(self, graph: Graph, statements: np.ndarray) -> np.ndarray:
        return graph.keys(statements)


class Head(Unit):
    """All confidential statements of one head."""

    name = "head"
    of_heads = True
    words = "all confidential statements with one entity (a patient, say) as head are"
    words_before = "all confidential statements about one entity (a patient, say) are"

    def of(self, graph: Graph, statements: np.ndarray) -> np.ndarray:
        return statements[:, 0].astype(np.int64)


class Group(Unit):
    """All confidential statements of heads that share the value of a relation."""

    name = "group"
    words = "all confidential statements with an entity of one group (by {key}) as head are"
    words_before = "all confidential statements of one group (by {key}) are"
    keyed = True
    of_heads = True
    stand_in = "head"

    def refuse(self, graph: Graph) -> None:
        if self.key not in graph.relations:
            raise UnknownNameError("relation", self.key, list(graph.relations))

    def of(self, graph: Graph, statements: np.ndarray) -> np.ndarray:
        return self._groups(graph)[statements[:, 0]]

    def _groups(self, graph: Graph) -> np.ndarray:
        """The group of every entity: the value of its key, or itself."""
        groups = np.arange(len(graph.entities), dtype=np.int64)
        named = graph.triples[graph.triples[:, 1] == graph.relations.id(self.key)].astype(np.int64)
        order = np.lexsort((named[:, 2], named[:, 0]))[::-1]  # of several values the smallest counts
        groups[named[order, 0]] = named[order, 2]
        return groups


def unit_of(words: str) -> Unit:
    """The unit that somebody names: «head», «group:RELATION»."""
    name, colon, key = str(words).partition(":")
    kind = registry.available("units").get(name)
    if kind is None or kind.keyed != bool(colon):
        ordered = sorted(registry.available("units").values(), key=lambda one: (one.keyed, -len(one.name)))
        *most, last = (f"{one.name}:RELATION" if one.keyed else one.name for one in ordered)
        raise ConfigError(f"unit must be {', '.join(most)} or {last}, found {words!r}")
    found: Unit = kind(key)
    return found


def units(graph: Graph, split: str = "train") -> np.ndarray:
    """The unit of every confidential statement of a split, as an integer (in the order of those statements)."""
    statements = graph.split(split)[graph.secret(split)]
    return unit_of(graph.marks.unit if graph.marks is not None else "statement").of(graph, statements)


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
