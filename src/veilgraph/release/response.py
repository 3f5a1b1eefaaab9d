"""Randomised response: one answer for each candidate cell, true with probability e^ε / (1 + e^ε).

A statement is in at most one cell, so all answers together cost a unit what its own do: ε for a statement, whatever the number of cells.
That is exact, without a δ, and it is *reached*: of a cell they had no idea about, whoever sees the answer is right with e^ε / (1 + e^ε).

Which cells are asked about is public (``candidates.py``): it follows from unrestricted statements and, where those say nothing about a
relation, from counts that were charged. What a yes means is worked out afterwards (``belief.py``), from answers and public facts alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilgraph.account.prices import Answers
from veilgraph.account.promise import Promise
from veilgraph.load.graph import Graph
from veilgraph.mark.units import capped, units
from veilgraph.noise.measure import Meter
from veilgraph.release.candidates import Candidates, intensities, seen_roles

WORTH = (
    0.03  # a cell is asked about if a yes makes it as probable as that; and for what a no may leave probable
)
LEAST = 1e-5  # expected statements in a cell: fewer are not asked for
LIKELY = 0.02  # expected statements in a cell that is weighed although it was answered no


@dataclass(frozen=True)
class Questions:
    """The cells that are asked about, and what was expected of them: public."""

    cells: Candidates
    intensity: np.ndarray  # [2R, E]
    sizes: np.ndarray  # [R] statements of each relation
    known: np.ndarray  # cells whose statement is unrestricted, sorted: nothing is asked there that matters
    threshold: float

    @classmethod
    def about(
        cls, public: Graph, possible: np.ndarray, epsilon: float, counted: np.ndarray | None = None
    ) -> Questions:
        """For answers of this ε about the ``possible`` relations; ``counted`` is how often, by charged counts, an entity is head and tail
        of the relations unrestricted statements never speak of, ``[2R, E]``."""
        entities, relations = len(public.entities), len(public.relations)
        seen = seen_roles(public.train, entities, relations)
        intensity = intensities(seen)
        if counted is not None:
            told = np.tile(~seen[:relations].any(1), 2)
            intensity[told] = counted[told]
            seen[told] = counted[told]
        intensity[np.tile(~possible, 2)] = 0  # (a public rule says that no confidential statement is there)
        sizes = np.maximum((seen[:relations].sum(1) + seen[relations:].sum(1)) / 2, 1.0)
        threshold = max(WORTH * math.exp(-epsilon), LEAST)
        cells = Candidates.at_least(intensity, sizes, threshold)
        known = cells.cells(public.train)
        return cls(cells, intensity, sizes, np.unique(known[known >= 0]), threshold)

    def likely(self) -> np.ndarray:
        """The cells that are probable enough to be weighed whatever was answered."""
        if self.threshold >= LIKELY:
            return np.arange(len(self.cells))
        few = Candidates.at_least(self.intensity, self.sizes, LIKELY)
        return self.cells.cells(few.statements(np.arange(len(few))))


def respond(graph: Graph, questions: Questions, promise: Promise, meter: Meter) -> np.ndarray:
    """The cells that are answered yes, sorted.

    Reads confidential data: which cells hold a confidential training statement, of each unit at most as many as it may have. Releases: the
    answers, at the cost of ``promise.answered``, which the meter was paid.
    """
    secret = graph.train[graph.secret("train")]
    if len(secret):
        secret = secret[capped(units(graph), promise.per_unit, meter.coins())]
    truth = questions.cells.cells(secret)
    asked = Answers(len(questions.cells), promise.per_unit, promise.answer_epsilon or 0.0)
    said = meter.answers(np.unique(truth[truth >= 0]), asked)
    return said[~np.isin(said, questions.known, assume_unique=True)]
