"""What private steps read: units drawn by coins, and the wrong answers they are held against."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from veilgraph.load.graph import Graph
from veilgraph.mark.rules import may_be_confidential, unknown_relations
from veilgraph.mark.units import capped, units
from veilgraph.noise.sample import PoissonSampler, Token
from veilgraph.rng import Streams
from veilgraph.train import negatives

TOGETHER = 64  # steps whose negatives are drawn at once


class PrivateBatches:
    """The confidential statements of a graph, at most m of each unit, and public wrong answers."""

    def __init__(
        self,
        graph: Graph,
        per_unit: int,
        rate: float,
        coins: np.random.Generator,
        streams: Streams,
        count: int,
        candidates: np.ndarray | None,
    ) -> None:
        """``count`` wrong answers each side, among ``candidates`` (None: all entities)."""
        unit_of = units(graph)
        kept = capped(unit_of, per_unit, coins)
        self.statements = graph.train[graph.secret("train")][kept].astype(np.int64)
        self.unit_of = unit_of[kept]
        self.sampler = PoissonSampler(self.unit_of, rate)
        self.streams, self.count = streams, count
        self.candidates = None if candidates is None else torch.from_numpy(candidates)
        self.among = len(graph.entities) if candidates is None else len(candidates)
        self.block, self.wrong = -1, torch.empty(0)

    def draw(self, coins: np.random.Generator, rate: float | None = None) -> tuple[Tensor, Tensor, Token]:
        """``[n, 3]`` the statements of the drawn units, unit by unit; whose each is; and the rate they were drawn at."""
        sampler = self.sampler if rate is None else PoissonSampler(self.unit_of, rate)
        chosen, owner, token = sampler.draw(coins)
        return torch.from_numpy(self.statements.take(chosen, 0)), torch.from_numpy(owner), token

    def negatives(self, number: int) -> Tensor:
        """``[2, count]`` the wrong answers of a step; drawn for several steps at a time, from the step's number alone."""
        block, place = divmod(number, TOGETHER)
        if block != self.block:
            drawing = self.streams.numpy("private", block)
            drawn = negatives.draw_two_sides(drawing, TOGETHER, self.count, self.among)
            self.wrong = torch.from_numpy(np.stack(np.split(drawn, 2), 1))
            self.block = block
        found = self.wrong[place]
        return found if self.candidates is None else self.candidates[found]


def relation_rows(graph: Graph, tables: str, *, reciprocal: bool) -> torch.Tensor:
    """The relation rows private steps move: those a confidential statement can be about, by the marking's rules.

    Where only relations are private, those that unrestricted statements teach already are left to them. Both are public.
    """
    possible = np.flatnonzero(may_be_confidential(graph))
    unknown = unknown_relations(graph)
    if tables == "relations" and len(unknown):
        possible = unknown
    both = (possible, possible + len(graph.relations)) if reciprocal else (possible,)
    return torch.from_numpy(np.concatenate(both))
