"""The shelf of a run: its users and items, who has what, and scores for as many users at a time as one likes.

Nothing here needs PyTorch but making query vectors (once, ``queries_of``) and models that are no dot product: a service that
kept its query vectors starts without it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from veilgraph.errors import InputError
from veilgraph.files import read_arrays
from veilgraph.layout import ENTITIES
from veilgraph.rank.answers import Answers
from veilgraph.recommend.catalogue import catalogue, names_itself
from veilgraph.recommend.offers import Offers, relation_of, scaled

if TYPE_CHECKING:
    from torch import Tensor

    from veilgraph.load.graph import Graph
    from veilgraph.run.run import Run

TOGETHER = 256  # users scored at a time
FEW = 4  # users: so many are scored together, fewer one by one (a product of few rows copies the whole block first)
BLOCKS = min(4, os.cpu_count() or 1)  # of items, scored side by side


@dataclass(frozen=True)
class Queries:
    """All that scoring needs of a model beside the vectors of the items."""

    users: np.ndarray  # [u, width] the query vectors of all users; [0, 0] of a model that is no dot product
    items: np.ndarray  # [i] what counts add to the score of an item; [0] if nothing


@dataclass(frozen=True)
class Shelf:
    """Nothing here has a cell for every user and item; ``part`` makes such a table for some users."""

    run: Run
    relation: int  # from users to items
    users: np.ndarray  # [u] entity ids, sorted
    items: np.ndarray  # [i] entity ids, sorted
    history: Answers
    popularity: np.ndarray  # [i] how many people have an item
    queries: Queries
    blocks: tuple[np.ndarray, ...]  # [width, part of i] the vectors of the items, of a dot product
    public: bool = False  # whether the items are a public list, from a file (see catalogue.py)

    @classmethod
    def of(
        cls,
        run: Run,
        graph: Graph,
        *,
        relation: str | None = None,
        splits: tuple[str, ...] = ("train",),
        queries: Queries | None = None,
        listed: str | None = None,
    ) -> Shelf:
        """Users and items of the training statements of a relation; what users have by these splits.

        ``listed`` names the public list of all items (catalogue.py), which then takes the place of those that somebody has.
        ``queries`` are those of an earlier shelf of the same run, graph and relation, if somebody kept them.
        """
        number = relation_of(graph, relation)
        own = graph.train[graph.train[:, 1] == number]
        if not len(own):
            raise InputError(f"no statement of {graph.relations[number]} to recommend from.")
        users = np.unique(own[:, 0])
        items = np.unique(own[:, 2]) if listed is None else catalogue(graph.entities, listed)
        history = history_of(graph, number, splits)
        count = np.bincount(history.answers, minlength=len(run.entities))[items]
        if queries is None:
            queries = queries_of(run, number, users, items)
        blocks: list[np.ndarray] = []
        if len(queries.users):
            rows = read_arrays(run.folder / ENTITIES, run.hashes.get(ENTITIES))[0]["rows"]
            blocks = np.array_split(rows[items].T, BLOCKS, 1)
        blocks = [np.ascontiguousarray(block) for block in blocks]
        return cls(
            run, number, users, items, history, count, queries, tuple(blocks), public=names_itself(listed)
        )

    def free(self, *, repeat: bool) -> np.ndarray:
        """``[u]`` how many items a list of each user could have."""
        if repeat:
            return np.full(len(self.users), len(self.items))
        first, last = self.history.spans(self.users, np.full(len(self.users), self.relation))
        known = np.concatenate([[0], np.cumsum(np.isin(self.history.answers, self.items))])
        return np.asarray(len(self.items) - (known[last] - known[first]))

    def place(self, user: str) -> int | None:
        """Where a user is, by name; None if nothing is known to go by."""
        number = self.run.entities.id(user)
        place = int(np.searchsorted(self.users, number))
        return place if place < len(self.users) and self.users[place] == number else None

    def part(self, places: np.ndarray) -> Offers:
        """What the run would offer to some users, by their places."""
        users = self.users[places]
        scores = np.empty((len(users), len(self.items)), np.float32)
        for start in range(0, len(users), TOGETHER):
            self._score(places[start : start + TOGETHER], scores[start : start + TOGETHER])
        scores = scaled(scores) if len(users) else scores
        taken = held(self.history, self.relation, users, self.items)
        return Offers(users, self.items, scores, taken, self.popularity, self.public)

    def _score(self, places: np.ndarray, out: np.ndarray) -> None:
        """Scores of these users into ``[b, i]``; products of a block on each core."""
        if not self.blocks:
            out[:] = self._by_model(places)
        else:
            query = self.queries.users[places]
            ends = np.cumsum([block.shape[1] for block in self.blocks])

            def product(block: np.ndarray, end: int) -> None:
                part = out[:, end - block.shape[1] : end]
                if len(query) < FEW:
                    for row, into in zip(query, part):
                        np.dot(row, block, out=into)
                else:
                    part[:] = query @ block

            list((_workers().map if len(query) > 1 else map)(product, self.blocks, ends))
        if len(self.queries.items):
            out += self.queries.items

    @cached_property
    def _rows(self) -> Tensor:
        """``[i, width]`` the vectors of the items, of a model that is no dot product."""
        import torch

        return self.run.parameters.entities.index_select(0, torch.from_numpy(self.items.astype(np.int64)))

    def _by_model(self, places: np.ndarray) -> np.ndarray:
        """``[b, i]`` scores of such a model, without what counts add."""
        import torch

        from veilgraph.rank.scoring import score_rows

        who = torch.from_numpy(self.users[places].astype(np.int64))
        relation, reciprocal = torch.full_like(who, self.relation), bool(self.run.config.reciprocal)
        model, p = self.run.model, self.run.parameters
        return score_rows(model, p, who, relation, self._rows, side="tail", reciprocal=reciprocal).numpy()


def queries_of(run: Run, relation: int, users: np.ndarray, items: np.ndarray) -> Queries:
    """Made by the model, once for all users."""
    import torch

    from veilgraph.models.base import GenericModel
    from veilgraph.models.similarity import Dot
    from veilgraph.rank.scoring import query_vectors

    p, everybody = run.parameters, torch.from_numpy(users.astype(np.int64))
    with torch.no_grad():
        bias = np.empty(0, np.float32)
        if p.prior is not None:
            ids = torch.from_numpy(items.astype(np.int64))
            bias = p.prior.gather(torch.tensor([relation]), "tail", ids[None])[0].numpy()
        if isinstance(run.model, GenericModel) or not isinstance(run.model.similarity, Dot):
            return Queries(np.empty((0, 0), np.float32), bias)
        made = [
            query_vectors(
                run.model,
                p,
                who,
                torch.full_like(who, relation),
                side="tail",
                reciprocal=bool(run.config.reciprocal),
            ).numpy()
            for who in torch.split(everybody, 1 << 14)
        ]
    return Queries(np.concatenate(made), bias)


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(BLOCKS, "shelf")


def offers_of(
    run: Run,
    graph: Graph,
    *,
    relation: str | None = None,
    splits: tuple[str, ...] = ("train",),
    listed: str | None = None,
) -> Offers:
    """What a run would offer to every user, in one table: for graphs where that is small."""
    shelf = Shelf.of(run, graph, relation=relation, splits=splits, listed=listed)
    return shelf.part(np.arange(len(shelf.users)))


def held(history: Answers, relation: int, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """``[u, i]`` who has what."""
    first, last = history.spans(users, np.full(len(users), relation))
    count = last - first
    rows = np.repeat(np.arange(len(users)), count)
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    found = history.answers[np.repeat(first, count) + within]
    column = np.minimum(np.searchsorted(items, found), len(items) - 1)
    there = items[column] == found
    out = np.zeros((len(users), len(items)), bool)
    out[rows[there], column[there]] = True
    return out


def history_of(graph: Graph, relation: int, splits: tuple[str, ...]) -> Answers:
    """What users have by these splits, to be looked up by user."""
    rows = [graph.splits[name] for name in splits if name in graph.splits]
    triples = np.concatenate(rows) if rows else np.empty((0, 3), np.int32)
    return Answers.of(triples[triples[:, 1] == relation], len(graph.relations), side="tail")
