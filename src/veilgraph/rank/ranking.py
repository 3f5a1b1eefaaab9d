"""Filtered ranks of true statements among all entities, both sides, ties at their average rank.

Each distinct question is scored once (one matrix product for dot models) and read once by a compiled count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from veilgraph.errors import DivergedError
from veilgraph.models import score_kernels
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rank.answers import Answers
from veilgraph.rank.scoring import score_all

SIDES = ("tail", "head")


@dataclass(frozen=True)
class Ranks:
    """The rank of every statement on one or both sides, and how many candidates it was ranked among."""

    triples: np.ndarray  # [q, 3]
    side: np.ndarray  # [q] "tail" | "head"
    rank: np.ndarray  # [q] float: 1 is best
    candidates: np.ndarray  # [q]


class Ranker:
    """Ranks statements under a filter of known ones; build once, use at every validation."""

    def __init__(self, known: np.ndarray, relations: int) -> None:
        self.answers = {side: Answers.of(known, relations, side=side) for side in SIDES}

    def rank(
        self,
        model: Model,
        p: Parameters,
        triples: np.ndarray,
        *,
        reciprocal: bool,
        memory: int = 1 << 28,
        progress: Callable[[int], None] | None = None,
        steady: bool = False,
    ) -> Ranks:
        """The filtered ranks of statements; score tables stay under ``memory`` bytes.

        ``steady``: the rank of a statement depends on itself and the model alone. A score that is not a number ranks last
        (instead of stopping everything), and tables have one size (products of another size round otherwise).
        """
        parts = [self._side(model, p, triples, side, reciprocal, memory, progress, steady) for side in SIDES]
        rank = np.concatenate([part[0] for part in parts])
        candidates = np.concatenate([part[1] for part in parts])
        return Ranks(np.concatenate([triples] * 2), np.repeat(SIDES, len(triples)), rank, candidates)

    def _side(
        self,
        model: Model,
        p: Parameters,
        triples: np.ndarray,
        side: str,
        reciprocal: bool,
        memory: int,
        progress: Callable[[int], None] | None,
        steady: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        triples = triples.astype(np.int64, copy=False)
        source, target = (triples[:, 0], triples[:, 2]) if side == "tail" else (triples[:, 2], triples[:, 0])
        relation = triples[:, 1]
        answers, entities = self.answers[side], len(p.entities)
        keys, owner = np.unique(source * answers.relations + relation, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        first, last = answers.spans(source, relation)
        better, equal = np.zeros(len(triples), np.int64), np.zeros(len(triples), np.int64)
        size = max(1, min(1024, memory // (8 * entities)))  # a table of scores, and room for one more
        edges = np.searchsorted(owner[order], np.arange(0, len(keys) + size, size))
        for i, start in enumerate(range(0, len(keys), size)):
            rows = order[edges[i] : edges[i + 1]]
            part = keys[start : start + size]
            if steady:
                part = np.pad(part, (0, size - len(part)), mode="edge")
            scores = score_all(
                model,
                p,
                torch.from_numpy(part // answers.relations),
                torch.from_numpy(part % answers.relations),
                side=side,
                reciprocal=reciprocal,
            )
            own = np.ascontiguousarray(owner[rows] - start)
            broken = ~np.isfinite(scores.numpy()[own, target[rows]])
            if broken.any() and not steady:
                raise DivergedError(
                    "the model gives scores that are not numbers: its training diverged. "
                    "Train again with a smaller learning_rate or a larger regulariser_weight."
                )
            above, same = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
            score_kernels.count_better(
                scores.numpy(), own, target[rows], first[rows], last[rows], answers.answers, above, same
            )
            better[rows], equal[rows] = np.where(broken, entities, above), np.where(broken, 0, same)
            if progress is not None:
                progress(len(rows))
        candidates = entities - (last - first) + _contained(answers, first, last, target)
        return 1 + better + equal / 2, candidates


def _contained(answers: Answers, first: np.ndarray, last: np.ndarray, target: np.ndarray) -> np.ndarray:
    """1 where the target is among the known answers (it then stays a candidate), else 0."""
    low, high = first.copy(), last.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        less = np.zeros(len(low), bool)
        less[open_] = answers.answers[middle[open_]] < target[open_]
        low = np.where(open_ & less, middle + 1, low)
        high = np.where(open_ & ~less, middle, high)
    inside = low < last
    found = np.zeros(len(low), np.int64)
    found[inside] = answers.answers[low[inside]] == target[inside]
    return found
