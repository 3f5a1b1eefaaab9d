"""Whom a membership attack decides about: members and non-members that differ in nothing but whether they were learnt from.

Held-out statements are no such thing by themselves. Official splits leave out what is easy (FB15k-237 holds out no statement whose
two entities another statement links), and names are kept in training; a model that never read a confidential statement can then tell
one from the other, and an AUC above ½ says nothing about what was betrayed. So either a fair coin withholds statements before a
training, or each non-member is matched with a member: of the same relation, linked by other statements or not, both ends about as
well known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilgraph.errors import InputError
from veilgraph.load import Graph
from veilgraph.mark.units import unit_of

FEWEST = 20
APART = 1.0  # the most a pair may differ by, in natural logarithms of degrees, all of them added up
AT_ONCE = 4000  # members of a kind that one assignment looks at


@dataclass(frozen=True)
class Pool:
    """Statements to decide about, the truth, and whose they are. Matched ones stand in the same order on both sides."""

    statements: np.ndarray
    member: np.ndarray
    unit: np.ndarray  # [n] from 0 on: what is decided about together

    @classmethod
    def of(cls, members: np.ndarray, others: np.ndarray) -> Pool:
        """Members first; each statement by itself."""
        both = np.concatenate([members, others])
        member = np.repeat([True, False], [len(members), len(others)])
        return cls(both, member, np.arange(len(both)))

    @property
    def units(self) -> np.ndarray:
        """``[u]`` whether a unit is a member."""
        return np.asarray(np.bincount(self.unit, self.member) > 0)

    def by_unit(self, scores: np.ndarray) -> np.ndarray:
        """``[u]`` what the scores of a unit's statements add up to, by their number."""
        return np.asarray(np.bincount(self.unit, scores) / np.bincount(self.unit))


def confidential(graph: Graph, split: str) -> np.ndarray:
    """The confidential statements of a split; all of them, where nothing is marked."""
    marked = graph.marks is not None and graph.secret("train").any()
    return graph.splits[split][graph.secret(split)] if marked else graph.splits[split]


def withheld(graph: Graph, count: int, rng: np.random.Generator) -> tuple[Graph, Pool]:
    """A graph without those of ``2 · count`` units of confidential statements (or half of all) that a fair coin takes out, and the pool.

    A unit goes as a whole: what is promised is that nobody can tell whether *it* was there.
    """
    inside, unit = confidential(graph, "train"), unit_of(unit_of_marks(graph))
    whose = np.unique(unit.of(graph, inside), return_inverse=True)[1]
    many = int(whose.max()) + 1 if len(whose) else 0
    size = min(2 * count, many)
    chosen = rng.choice(many, size, replace=False)
    out = rng.random(size) < 0.5
    if min(out.sum(), (~out).sum()) < FEWEST:
        raise InputError(
            f"the attack needs {FEWEST} members and {FEWEST} non-members at least: found {many} units of confidential training "
            "statements to withhold from."
        )
    place, gone = np.full(many, -1), np.zeros(many, bool)
    place[chosen], gone[chosen] = np.arange(size), out
    about = place[whose] >= 0
    kept = ~np.isin(graph.keys(graph.train), graph.keys(inside[gone[whose]]))
    pool = Pool(inside[about], ~gone[whose[about]], place[whose[about]])
    return graph.with_splits({**graph.splits, "train": graph.train[kept]}), pool


def unit_of_marks(graph: Graph) -> str:
    """What a promise about this graph is about."""
    return graph.marks.unit if graph.marks is not None else "statement"


def matched(graph: Graph, count: int, rng: np.random.Generator) -> Pool:
    """Held-out confidential statements, each with a member like it; those without one are left out."""
    if unit_of_marks(graph) != "statement":
        raise InputError(
            f"the unit is {unit_of_marks(graph)}, and a held-out statement is no such unit by itself: deciding about single statements "
            "would look safer than what is promised. Train a twin of the run from which a coin withholds whole units: --withhold."
        )
    inside = confidential(graph, "train")
    held = [confidential(graph, split) for split in graph.splits if split != "train"]
    outside = np.concatenate(held or [inside[:0]])
    outside = np.unique(outside[~np.isin(graph.keys(outside), graph.keys(graph.train))], axis=0)
    inside = np.unique(inside, axis=0)
    if len(outside) < FEWEST or len(inside) < FEWEST:
        raise InputError(
            f"the attack needs real non-members: found {len(outside)} held-out and {len(inside)} training statements of the "
            f"kind that is confidential, {FEWEST} of each are the least. Load the graph with --split random, or train a twin of the "
            "run from which a coin withholds some: --withhold."
        )
    outside = outside[rng.permutation(len(outside))[:count]]
    inside = inside[rng.permutation(len(inside))]
    known, unknown = Surroundings(graph), graph.secret("train")
    unknown = unknown if unknown.any() else ~unknown
    kinds = [np.column_stack([rows[:, 1], known.linked(rows)]) for rows in (inside, outside)]
    ends = [known.ends(rows, unknown) for rows in (inside, outside)]
    members, others = [], []
    for kind in np.unique(kinds[1], axis=0):
        own, of = (np.flatnonzero((rows == kind).all(1)) for rows in kinds)
        pairs = _pairs(ends[0][own[:AT_ONCE]], ends[1][of[:AT_ONCE]])
        members.append(inside[own[pairs[:, 0]]])
        others.append(outside[of[pairs[:, 1]]])
    found = Pool.of(np.concatenate(members), np.concatenate(others))
    if found.member.sum() < FEWEST:
        raise InputError(
            f"of {len(outside)} held-out confidential statements only {found.member.sum()} have a member like them (relation, both ends' "
            f"degrees), {FEWEST} are the least: whatever an attack found would be about the split. Train a twin of the run from which a "
            "coin withholds some: --withhold."
        )
    return found


class Surroundings:
    """What training says about the ends of a statement, the statement itself left out."""

    def __init__(self, graph: Graph) -> None:
        self.entities, self.relations = len(graph.entities), len(graph.relations)
        self.train, self.keys = graph.train.astype(np.int64), np.unique(graph.keys(graph.train))
        self._keys_of = graph.keys
        self.pairs = np.concatenate([self._pair(self.train), self._pair(self.train[:, ::-1])])

    def _pair(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows[:, 0].astype(np.int64) * self.entities + rows[:, 2])

    def itself(self, rows: np.ndarray) -> np.ndarray:
        """Whether training has these very statements."""
        return np.isin(self._keys_of(rows), self.keys)

    def linked(self, rows: np.ndarray) -> np.ndarray:
        """Whether another statement links both ends."""
        own = np.where(rows[:, 0] == rows[:, 2], 2, 1) * self.itself(rows)
        return np.asarray(_counted(self.pairs, self._pair(rows)) > own).astype(np.int64)

    def ends(self, rows: np.ndarray, secret: np.ndarray) -> np.ndarray:
        """``[n, 6]`` logarithms: of both ends the unrestricted degree, the confidential one, and how often it fills this role."""
        own = self.itself(rows).astype(np.int64)
        twice = own * (rows[:, 0] == rows[:, 2])
        out = []
        for side in (0, 2):
            end = rows[:, side].astype(np.int64)
            for part, less in ((~secret, 0), (secret, own + twice)):
                both = self.train[part][:, [0, 2]].ravel()
                out.append(np.bincount(both, minlength=self.entities)[end] - less)
            role = self.train[:, 1] * self.entities + self.train[:, side]
            out.append(_counted(role, rows[:, 1].astype(np.int64) * self.entities + end) - own)
        return np.log1p(np.maximum(np.column_stack(out), 0))


def _counted(keys: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """How often each number that is asked for is among the keys."""
    found, counts = np.unique(keys, return_counts=True)
    place = np.minimum(np.searchsorted(found, asked), len(found) - 1)
    return np.where(found[place] == asked, counts[place], 0)


def _pairs(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """``[n, 2]``: as many as can be had with the smallest differences in all, and none that differs by much."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    if not len(inside) or not len(outside):
        return np.zeros((0, 2), np.int64)
    apart = cdist(inside, outside, "cityblock")
    found = np.column_stack(linear_sum_assignment(np.where(apart <= APART, apart, 1e6)))
    return found[apart[found[:, 0], found[:, 1]] <= APART]
