"""How probable the statement of each cell is, given its answer: post-processing of answers and public facts.

What was thought of a cell before (its odds) comes from a logistic regression on what is public of it: the intensities of its head and tail,
and what a model of unrestricted statements says to (head, relation, ?) and (?, relation, tail). It is fitted to the answers themselves by
a likelihood that knows how often they lie: a cell of prior probability π is answered yes with π·(1 − p) + (1 − π)·p. So what is believed is
right on average for confidential statements, whichever they are, and nothing is assumed about how they differ from unrestricted ones.
Afterwards odds × e^ε for a yes, × e^−ε for a no.

Whoever learns should learn the difference: the gradient of the answers' likelihood on the log odds of a cell is its probability after the
answer less the one before. What was probable anyway teaches nothing (learning it as if it were new costs quality where ε is small).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rank.scoring import query_vectors, score_rows
from veilgraph.release.response import Questions

ASKED = 500_000  # cells, and answers, that the regression is fitted to
AGAINST = 512  # entities that a score is held against
ROUNDS = 100
SMALLEST = 0.05  # probability: statements below it are not learnt from
PENALTY = 1e-3
LOWEST = -20.0  # of a log probability


class Believed(NamedTuple):
    """Statements, and how probable each is."""

    statements: np.ndarray  # [n, 3]
    probability: np.ndarray  # [n] float32
    learnt: (
        np.ndarray
    )  # [n] float32: how much more probable the answer made it, which is what there is to learn


@dataclass(frozen=True)
class Teacher:
    """A model of unrestricted statements, asked how well a statement fits."""

    model: Model
    parameters: Parameters
    reciprocal: bool
    against: torch.Tensor  # entities

    def fits(self, statements: np.ndarray) -> list[np.ndarray]:
        """The log of the share a tail, and a head, has among all answers; ``[n]`` each."""
        head, relation, tail = torch.from_numpy(statements.astype(np.int64)).T
        return [
            self._side(relation, head, tail, "tail").clip(LOWEST, 0),
            self._side(relation, tail, head, "head").clip(LOWEST, 0),
        ]

    def _side(
        self, relation: torch.Tensor, source: torch.Tensor, answer: torch.Tensor, side: str
    ) -> np.ndarray:
        p, found = self.parameters, torch.empty(len(source))
        key = source * len(p.relations) + relation
        questions, index = torch.unique(key, return_inverse=True)
        rows, size = p.entities.index_select(0, self.against), math.log(len(p.entities) / len(self.against))
        whole = torch.empty(len(questions))
        with torch.no_grad():
            for part in torch.split(torch.arange(len(questions)), 1 << 15):
                asked, about = questions[part] // len(p.relations), questions[part] % len(p.relations)
                scores = score_rows(self.model, p, asked, about, rows, side=side, reciprocal=self.reciprocal)
                whole[part] = torch.logsumexp(scores, 1) + size
            for part in torch.split(torch.arange(len(source)), 1 << 17):
                query = query_vectors(
                    self.model, p, source[part], relation[part], side=side, reciprocal=self.reciprocal
                )
                found[part] = self.model.similarity.pairs(query, p.entities.index_select(0, answer[part]))
        return np.asarray((found - whole[index]).numpy())


def believe(
    questions: Questions,
    yes: np.ndarray,
    epsilon: float,
    teachers: Sequence[Teacher],
    rng: np.random.Generator,
) -> Believed:
    """What is worth learning from after these answers: cells of yes, and of no where that was thought likely.

    No ``teachers``: nobody says how well a statement fits. One was taught unrestricted statements; several were taught answers too, each
    all but its own fold's, so that no answer speaks for itself.

    Reads confidential data: none; the answers are public. Releases: nothing.
    """
    if not len(questions.cells):
        return Believed(np.empty((0, 3), np.int32), np.empty(0, np.float32), np.empty(0, np.float32))
    lie = 1 / (1 + math.exp(epsilon))
    others, weight = _drawn(questions, rng)
    some = yes if len(yes) <= ASKED else np.sort(rng.choice(yes, ASKED, replace=False))
    fitted = _fit(
        _facts(questions, some, teachers),
        len(yes) / max(len(some), 1),
        _facts(questions, others, teachers),
        weight,
        lie,
    )
    no = np.setdiff1d(questions.likely(), np.union1d(yes, questions.known))
    cells, odds = np.concatenate([yes, no]), np.r_[np.full(len(yes), epsilon), np.full(len(no), -epsilon)]
    logit = np.concatenate(
        [
            fitted.logit(_facts(questions, part, teachers))
            for part in np.array_split(cells, 1 + len(cells) // (1 << 20))
        ]
    )
    before, after = (1 / (1 + np.exp(-np.clip(one, -700, 700))) for one in (logit, logit + odds))
    kept = after >= SMALLEST
    learnt = np.maximum(after - before, 0)[kept].astype(np.float32)
    return Believed(questions.cells.statements(cells[kept]), after[kept].astype(np.float32), learnt)


def _facts(questions: Questions, cells: np.ndarray, teachers: Sequence[Teacher]) -> np.ndarray:
    """What is public of cells, ``[n, facts]``."""
    statements = questions.cells.statements(cells)
    head, relation, tail = statements.astype(np.int64).T
    a = np.log(questions.intensity[relation, head])
    b = np.log(questions.intensity[len(questions.sizes) + relation, tail])
    facts = [
        np.ones(len(cells)),
        a,
        b,
        np.log(questions.sizes[relation]),
        a * b,
        a * a,
        b * b,
        np.minimum(a, 0),
        np.minimum(b, 0),
    ]
    if teachers:
        f, g = _fits(teachers, cells, statements)
        facts += [f, g, f * g, f * f, g * g, a * f, b * g, a * g, b * f, np.maximum(f, g)]
    return np.column_stack(facts).astype(np.float64)


def fold_of(cells: np.ndarray, folds: int) -> np.ndarray:
    """Which teacher speaks of a cell: of several, the one that was not taught its answer."""
    return np.asarray(cells % max(folds, 1))


def _fits(teachers: Sequence[Teacher], cells: np.ndarray, statements: np.ndarray) -> np.ndarray:
    """What the teachers say of statements, ``[2, n]``."""
    found, whose = np.empty((2, len(cells)), np.float32), fold_of(cells, len(teachers))
    for number, teacher in enumerate(teachers):
        found[:, whose == number] = teacher.fits(statements[whose == number])
    return found


def _drawn(questions: Questions, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Cells that stand for all: half of them from anywhere, half where statements are expected; and for how many cells each stands."""
    every, half = len(questions.cells), ASKED // 2
    anywhere = rng.integers(0, max(every, 1), half if every else 0)
    expected, chance = _where_expected(questions, half, rng)
    cells = np.concatenate([anywhere, expected])
    weight = 1 / (len(anywhere) / max(every, 1) + half * chance(cells))
    new = ~np.isin(cells, questions.known)
    return cells[new], weight[new]


def _where_expected(questions: Questions, count: int, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """Cells drawn in proportion to what is expected of them, and the chance of each to be."""
    relations, entities = len(questions.sizes), questions.intensity.shape[1]
    heads, tails = (
        questions.intensity[:relations].astype(np.float64),
        questions.intensity[relations:].astype(np.float64),
    )
    both = [np.maximum(table.sum(1), 1e-12) for table in (heads, tails)]
    of_head = (heads / both[0][:, None] * questions.sizes[:, None]).reshape(-1)
    total = float(of_head.sum())
    place = np.searchsorted(np.cumsum(of_head), rng.random(count) * total).clip(max=len(of_head) - 1)
    relation, head = place // entities, place % entities
    ends = np.cumsum(tails.reshape(-1))
    starts = np.r_[0.0, ends[entities - 1 :: entities][:-1]]
    tail = np.searchsorted(ends, starts[relation] + rng.random(count) * both[1][relation]).clip(
        max=len(ends) - 1
    )
    right = tail // entities == relation
    statements = np.column_stack([head, relation, tail % entities])[right]
    found = questions.cells.cells(statements)

    def chance(cells: np.ndarray) -> np.ndarray:
        head, relation, tail = questions.cells.statements(cells).astype(np.int64).T
        return np.asarray(
            of_head[relation * entities + head] / total * tails[relation, tail] / both[1][relation]
        )

    return found[found >= 0], chance


@dataclass(frozen=True)
class _Fitted:
    centre: np.ndarray
    scale: np.ndarray
    weights: np.ndarray

    def logit(self, facts: np.ndarray) -> np.ndarray:
        """Log odds before the answer."""
        return np.asarray(((facts - self.centre) / self.scale) @ self.weights)


def _fit(yes: np.ndarray, times: float, others: np.ndarray, weight: np.ndarray, lie: float) -> _Fitted:
    """The regression under which the answers are most probable; a yes stands for ``times`` cells, another for its ``weight``."""
    from scipy.optimize import minimize

    centre, scale = others.mean(0), others.std(0) + 1e-9
    centre[0], scale[0] = 0.0, 1.0
    yes, others = (yes - centre) / scale, (others - centre) / scale

    def chance(facts: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of a yes, and its derivative on the log odds."""
        prior = 1 / (1 + np.exp(-np.clip(facts @ at, -700, 700)))
        return prior * (1 - lie) + (1 - prior) * lie, (1 - 2 * lie) * prior * (1 - prior)

    def cost(at: np.ndarray) -> tuple[float, np.ndarray]:
        """All cells as if answered no, by those that stand for them, and what a yes adds."""
        (said, on_said), (none, on_none) = chance(yes, at), chance(others, at)
        value = -times * (np.log(said) - np.log1p(-said)).sum() - (weight * np.log1p(-none)).sum()
        slope = others.T @ (weight * on_none / (1 - none)) - times * (
            yes.T @ (on_said / said + on_said / (1 - said))
        )
        whole = max(len(yes) * times, 1.0)
        return (value + PENALTY * (at[1:] ** 2).sum()) / whole, (
            slope + 2 * PENALTY * np.r_[0, at[1:]]
        ) / whole

    start = np.zeros(yes.shape[1])
    start[0] = -6.0
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
    return _Fitted(centre, scale, found.x)
