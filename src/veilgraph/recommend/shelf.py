"""The shelf of a run: its users and items, who has what, and scores for as many users at a time as one likes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from veilgraph.errors import InputError
from veilgraph.evaluate.answers import Answers
from veilgraph.evaluate.scoring import query_vectors, score_rows
from veilgraph.models.base import GenericModel
from veilgraph.models.similarity import Dot
from veilgraph.recommend.offers import Offers, relation_of, scaled

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph
    from veilgraph.runs import Run

TOGETHER = 256  # users scored at a time
BLOCKS = min(4, os.cpu_count() or 1)  # of items, scored side by side


@dataclass(frozen=True)
class Shelf:
    """Nothing here has a cell for every user and item; ``part`` makes such a table for some users."""

    run: Run
    relation: int  # from users to items
    users: np.ndarray  # [u] entity ids, sorted
    items: np.ndarray  # [i] entity ids, sorted
    history: Answers
    popularity: np.ndarray  # [i] how many people have an item
    rows: Tensor  # [i, width] the vectors of the items, of a model that is no dot product
    blocks: tuple[np.ndarray, ...]  # [width, part of i] of one that is: a few users are scored quicker so
    bias: Tensor | None  # [i] what counts add to the score of an item

    @classmethod
    def of(
        cls, run: Run, graph: Graph, *, relation: str | None = None, splits: tuple[str, ...] = ("train",)
    ) -> Shelf:
        """Users and items of the training statements of a relation; what users have by these splits."""
        number = relation_of(graph, relation)
        own = graph.train[graph.train[:, 1] == number]
        if not len(own):
            raise InputError(f"no statement of {graph.relations[number]} to recommend from.")
        users, items = np.unique(own[:, 0]), np.unique(own[:, 2])
        history = history_of(graph, number, splits)
        ids = torch.from_numpy(items.astype(np.int64))
        p = run.parameters
        bias = p.prior.gather(torch.tensor([number]), "tail", ids[None])[0] if p.prior is not None else None
        count = np.bincount(history.answers, minlength=len(run.entities))[items]
        rows = p.entities.index_select(0, ids)
        dot = isinstance(run.model.similarity, Dot) and not isinstance(run.model, GenericModel)
        blocks = np.array_split(rows.numpy().T, BLOCKS, 1) if dot else []
        return cls(
            run,
            number,
            users,
            items,
            history,
            count,
            torch.empty(0) if dot else rows,
            tuple(np.ascontiguousarray(block) for block in blocks),
            bias,
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
            who = torch.from_numpy(users[start : start + TOGETHER].astype(np.int64))
            self._score(who, scores[start : start + TOGETHER])
        with np.errstate(invalid="ignore"):
            total = scores.sum()  # one that is none makes the sum none
        if not np.isfinite(total):
            raise InputError("the run gives scores that are not numbers: its training diverged. Train again.")
        scores = scaled(scores) if len(users) else scores
        return Offers(
            users, self.items, scores, held(self.history, self.relation, users, self.items), self.popularity
        )

    @cached_property
    def queries(self) -> np.ndarray:
        """``[u, width]`` the query vectors of all users, of a model that is a dot product."""
        parts = []
        for start in range(0, len(self.users), 1 << 14):
            who = torch.from_numpy(self.users[start : start + (1 << 14)].astype(np.int64))
            with torch.no_grad():
                made = query_vectors(
                    self.run.model,
                    self.run.parameters,
                    who,
                    torch.full_like(who, self.relation),
                    side="tail",
                    reciprocal=bool(self.run.config.reciprocal),
                )
            parts.append(made.numpy())
        return np.concatenate(parts)

    def _score(self, who: Tensor, out: np.ndarray) -> None:
        """Scores of these users into ``[b, i]``; products of a block on each core."""
        if not self.blocks:
            model, p, relation = self.run.model, self.run.parameters, torch.full_like(who, self.relation)
            reciprocal = bool(self.run.config.reciprocal)
            out[:] = score_rows(
                model, p, who, relation, self.rows, side="tail", reciprocal=reciprocal
            ).numpy()
        else:
            query = self.queries[np.searchsorted(self.users, who.numpy())]
            ends = np.cumsum([block.shape[1] for block in self.blocks])

            def product(block: np.ndarray, end: int) -> None:
                out[:, end - block.shape[1] : end] = query @ block

            list((_workers().map if len(who) > 1 else map)(product, self.blocks, ends))
        if self.bias is not None:
            out += self.bias.numpy()


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(BLOCKS, "shelf")


def offers_of(
    run: Run, graph: Graph, *, relation: str | None = None, splits: tuple[str, ...] = ("train",)
) -> Offers:
    """What a run would offer to every user, in one table: for graphs where that is small."""
    shelf = Shelf.of(run, graph, relation=relation, splits=splits)
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
