"""What an attacker knows: lists, facts about items, what else is known about people, their history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from veilgraph.errors import ConfigError
from veilgraph.load.graph import Graph
from veilgraph.recommend.offers import Offers

KNOWLEDGE = ("lists", "items", "people", "history")  # each with all before it


def features_of(lists: np.ndarray, items: int) -> sparse.csr_matrix:
    """A column per item: what is in the list, the first more than the last."""
    users, size = lists.shape
    weight = np.tile(0.5 + 1 / np.log2(np.arange(2, size + 2)), users)
    return sparse.csr_matrix((weight, lists.ravel(), np.arange(users + 1) * size), (users, items))


@dataclass(frozen=True)
class Knowledge:
    """What the attacker knows beside the lists: facts about items, and about people."""

    items: np.ndarray  # [i, facts]
    people: sparse.csr_matrix  # [u, facts]

    def with_lists(self, lists: np.ndarray) -> sparse.csr_matrix:
        """All features of everybody; most are zero."""
        own = features_of(lists, len(self.items))
        return sparse.hstack([own, sparse.csr_matrix(own @ self.items), self.people], format="csr")


def knowledge_of(graph: Graph, offers: Offers, but: tuple[str, ...], knowledge: str) -> Knowledge:
    """Lists only; also what is public about items; also what else (``but`` the secret) is known about people; also what
    they have."""
    if knowledge not in KNOWLEDGE:
        raise ConfigError(f"knowledge is one of {', '.join(KNOWLEDGE)}; found {knowledge!r}.")
    level = KNOWLEDGE.index(knowledge)
    about_items = _facts(graph, offers.items, ()) if level >= 1 else _nothing(offers.items)
    people = [_nothing(offers.users)]
    if level >= 2:
        people.append(_facts(graph, offers.users, but))
    if level >= 3:
        people.append(offers.taken.astype(np.float32))
    return Knowledge(about_items, sparse.csr_matrix(np.column_stack(people)))


def _facts(graph: Graph, about: np.ndarray, but: tuple[str, ...]) -> np.ndarray:
    """A column for every value of every relation, but some, that these entities are heads of."""
    left_out = [graph.relations.id(name) for name in but]
    said = graph.triples[np.isin(graph.triples[:, 0], about) & ~np.isin(graph.triples[:, 1], left_out)]
    _, column = np.unique(said[:, 1].astype(np.int64) * len(graph.entities) + said[:, 2], return_inverse=True)
    out = np.zeros((len(about), int(column.max()) + 1 if len(column) else 0), np.float32)
    out[np.searchsorted(about, said[:, 0]), column] = 1
    return out


def _nothing(about: np.ndarray) -> np.ndarray:
    return np.zeros((len(about), 0), np.float32)
