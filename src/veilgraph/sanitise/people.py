"""People, their lists and what they told: how a service would make lists, with some people's attribute to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from veilgraph.errors import InputError, UsageError
from veilgraph.load.graph import Graph
from veilgraph.recommend.offers import Offers
from veilgraph.sanitise import Request, Sanitiser, sanitise
from veilgraph.sanitise.erase import Eraser

PARTS = 5  # of the people who told: each part's lists are made with what the others told
TEACHERS = 1000  # most people whose scores are looked at to learn what to erase


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


class Source(Protocol):
    """Users and items with scores on demand: a ``Shelf``, or ``Offers`` of everybody."""

    def part(self, places: np.ndarray) -> Offers:
        """Scores of some users, by their places."""


@dataclass(frozen=True)
class Policy:
    """How lists of everybody are made: sanitisers, and what they learnt from people who told their attribute.

    Nobody's own list is made with what they told: people who told are in parts, each with an eraser learnt from the
    others; everybody else gets one learnt from all of them.
    """

    chain: tuple[Sanitiser, ...]
    part: np.ndarray  # [u] whose eraser; -1: that of people who did not tell
    erasers: Mapping[int, Eraser]

    @classmethod
    def prepare(
        cls, source: Source, chain: Sequence[Sanitiser], told: np.ndarray, values: np.ndarray
    ) -> Policy:
        """Learn what there is to learn; ``told`` says whose ``values`` may be learnt from."""
        part, people = np.full(len(values), -1), np.flatnonzero(told & (values >= 0))
        learning = [one for one in chain if one.needs_eraser]
        if not learning:
            return cls(tuple(chain), part, {})
        if len(learning) > 1:
            raise UsageError("one sanitiser of a chain can learn from people, not several.")
        if not len(people):
            raise UsageError("balanced lists need people who told their attribute: name it with --attribute.")
        part[people] = np.random.default_rng(0).permutation(len(people)) % PARTS
        heard = np.sort(np.random.default_rng(1).permutation(people)[:TEACHERS])
        scores = learning[0].seen(source.part(heard).scores)
        wanted = sorted({int(number) for number in part})
        return cls(
            tuple(chain),
            part,
            {
                number: Eraser.fit(scores[part[heard] != number], values[heard[part[heard] != number]])
                for number in wanted
            },
        )

    def lists(
        self, offers: Offers, places: np.ndarray, *, top: int, repeat: bool, seed: int | None = None
    ) -> np.ndarray:
        """``[b, top]`` columns for the users of these offers; ``places`` says which users of all they are."""
        allowed, public = offers.allowed(repeat=repeat), offers.public
        request = Request(offers.scores, allowed, top, offers.popularity, public_items=public, repeat=repeat)
        if not self.erasers:
            return sanitise(request, self.chain, seed)
        lists = np.empty((len(places), top), np.int64)
        whose = self.part[places]
        for number in set(whose.tolist()):
            rows = np.flatnonzero(whose == number)
            scores, allowed = request.scores, request.allowed
            if len(rows) < len(places):
                scores, allowed = scores[rows], allowed[rows]
            own = self.erasers[number]
            one = replace(request, scores=scores, allowed=allowed, eraser=own)
            lists[rows] = sanitise(one, self.chain, seed)
        return lists

    def tensors(self) -> dict[str, np.ndarray]:
        """What was learnt, for a file."""
        out = {"part": self.part}
        for number, eraser in self.erasers.items():
            out |= {f"{number}.{key}": getattr(eraser, key) for key in ("mean", "read", "write")}
        return out

    @classmethod
    def of(cls, chain: Sequence[Sanitiser], tensors: Mapping[str, np.ndarray]) -> Policy:
        """The same from a file."""
        numbers = {int(key.partition(".")[0]) for key in tensors if "." in key}
        erasers = {n: Eraser(*(tensors[f"{n}.{key}"] for key in ("mean", "read", "write"))) for n in numbers}
        return cls(tuple(chain), tensors["part"], erasers)
