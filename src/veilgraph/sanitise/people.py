"""People, their lists and what they told: how a service would make lists, with some people's attribute to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilgraph.errors import InputError
from veilgraph.load.graph import Graph
from veilgraph.recommend.offers import Offers
from veilgraph.sanitise import Request, Sanitiser, sanitise
from veilgraph.sanitise.erase import Eraser

PARTS = 5  # of the people who told: each part's lists are made with what the others told


@dataclass(frozen=True)
class Attribute:
    """What is secret about every user; -1 where nobody knows."""

    name: str
    values: tuple[str, ...]
    of: np.ndarray  # [u] places among the values

    @classmethod
    def read(cls, graph: Graph, name: str, users: np.ndarray) -> Attribute:
        """From the statements (user, ``name``, value) of every split; of several values the first counts."""
        relation = graph.relations.id(name)
        said = graph.triples[graph.triples[:, 1] == relation]
        said = said[np.isin(said[:, 0], users)][::-1]
        values, code = np.unique(said[:, 2], return_inverse=True)
        if len(values) < 2:
            raise InputError(f"{name} has {len(values)} values among the users: there is nothing to guess.")
        of = np.full(len(users), -1)
        of[np.searchsorted(users, said[:, 0])] = code
        return cls(name, tuple(graph.entities[int(v)] for v in values), of)


def lists_for(
    offers: Offers,
    chain: Sequence[Sanitiser],
    told: np.ndarray,
    values: np.ndarray,
    *,
    top: int,
    repeat: bool,
    seed: int | None = None,
) -> np.ndarray:
    """Sanitised lists of everybody; ``told`` says whose values may be learnt from.

    Where a sanitiser learns, nobody's own list is made with what they told: people who told are done in parts, each with
    what the others told; everybody else with what all of them told.
    """
    request = Request(
        offers.scores, offers.allowed(repeat=repeat), offers.best(top, repeat=repeat), offers.taken.sum(0)
    )
    if not any(one.needs_eraser for one in chain):
        return sanitise(request, chain, seed)
    people = np.flatnonzero(told & (values >= 0))
    part = np.full(len(values), -1)
    part[people] = np.random.default_rng(0).permutation(len(people)) % PARTS
    lists = np.empty_like(request.lists)
    for number in range(-1, PARTS):
        rows = np.flatnonzero(part == number)
        teachers = people[part[people] != number]
        if not len(rows):
            continue
        eraser = Eraser.fit(offers.scores[teachers], values[teachers])
        one = Request(
            request.scores[rows], request.allowed[rows], request.lists[rows], request.popularity, eraser
        )
        lists[rows] = sanitise(one, chain, seed)
    return lists
