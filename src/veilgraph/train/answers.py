"""The answers a training learns from: asked once, charged before they are drawn, kept until the training is over.

First a model of unrestricted statements is trained (the teacher), by which a yes is weighed; then a fresh one learns unrestricted
statements and those that were answered yes, each as much as it is probable. All of it but the answers is ordinary work on public data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from veilgraph.account.epsilon import spent
from veilgraph.account.events import nothing
from veilgraph.account.ledger import Ledger
from veilgraph.account.promise import Promise
from veilgraph.errors import PrivacyError, VerificationError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.layout import ANSWERED, MARGINALS
from veilgraph.load.graph import Graph
from veilgraph.mark.rules import may_be_confidential
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.models.prior import Prior
from veilgraph.noise.gauss import Noise
from veilgraph.noise.measure import Meter
from veilgraph.release.belief import AGAINST, SMALLEST, Believed, Teacher, believe, fold_of
from veilgraph.release.counts import BELOW, weighted
from veilgraph.release.response import Questions, respond
from veilgraph.rng import Streams
from veilgraph.train.plan import OrdinaryPlan
from veilgraph.train.rows import Rows
from veilgraph.train.tasks import Task

STANDS = 0.5  # a count below it did not stand out of its noise, and says what was expected instead (release/counts.py)
WRITTEN = "answers are written"


class Answers:
    """What was asked, what was answered, and what is believed of it."""

    def __init__(self, graph: Graph, public: Graph, promise: Promise, folder: Path) -> None:
        self.graph, self.public, self.promise, self.path = graph, public, promise, folder / ANSWERED

    def drawn(self, ledger: Ledger, noise: Noise, prior: Prior | None) -> None:
        """Have the answers in the folder: those that are there, or new ones, charged first.

        A charge pays for one release: where a process died after it and before the answers were written, nothing was released, and they
        are drawn anew under the same charge. Once the ledger says that they were written, a missing file is refused.

        Reads confidential data: which cells hold a confidential statement. Releases: the answers.
        """
        questions, event = self.questions(prior), self.promise.answered
        if event not in ledger.events:
            if self.path.exists():
                raise VerificationError(
                    f"{self.path} is there, but the ledger does not charge it. Train anew."
                )
            self._require_budget(ledger)
            ledger.charge(event, f"randomised response ({len(questions.cells):,} cells)")
        written = any(line["what"] == WRITTEN for line in ledger.lines)
        if not self.path.exists():
            if written:
                raise VerificationError(
                    f"{self.path} is gone: the answers that were paid for cannot be drawn again. Train anew."
                )
            meter = Meter(ledger, noise)
            meter.paid(event)
            yes = respond(self.graph, questions, self.promise, meter)
            write_tensors(self.path, {"yes": torch.from_numpy(yes)})
        if not written:
            ledger.charge(nothing(), WRITTEN)

    def _require_budget(self, ledger: Ledger) -> None:
        after = spent([*ledger.events, self.promise.answered], self.promise.delta).epsilon
        if self.promise.epsilon is not None and ledger.private and after > self.promise.epsilon * (1 + 1e-9):
            raise PrivacyError(
                f"answers with ε = {self.promise.answer_epsilon:g} each would bring ε to {after:.3g}, beyond the budget of "
                f"{self.promise.epsilon:g}. Leave --answer-epsilon out: it follows from --epsilon."
            )

    def questions(self, prior: Prior | None) -> Questions:
        """The cells that are asked about: public."""
        counted = None if prior is None else counts_of(prior)
        possible = may_be_confidential(self.graph)
        return Questions.about(self.public, possible, self.promise.answer_epsilon or 0.0, counted)

    def weigh(
        self, prior: Prior | None, teachers: Sequence[tuple[Model, Parameters, bool]], streams: Streams
    ) -> None:
        """Write down how probable each statement is, by what models say that were not taught its answer."""
        rng = streams.numpy("answers")
        told = []
        for model, p, reciprocal in teachers:
            some = rng.choice(len(p.entities), min(AGAINST, len(p.entities)), replace=False)
            told.append(Teacher(model, replace(p, prior=None), reciprocal, torch.from_numpy(np.sort(some))))
        yes = read_tensors(self.path)[0]["yes"].numpy()
        believed = believe(self.questions(prior), yes, self.promise.answer_epsilon or 0.0, told, rng)
        write_tensors(
            self.path,
            {
                "yes": torch.from_numpy(yes),
                "statements": torch.from_numpy(believed.statements),
                "probability": torch.from_numpy(believed.probability),
                "learnt": torch.from_numpy(believed.learnt),
            },
        )

    def count(self) -> None:
        """Count what is public and what was answered yes, as much as it is learnt, and keep it beside the run's vectors."""
        prior = weighted(self.learnt())
        if prior is not None:
            write_tensors(self.path.parent / MARGINALS, prior.tensors())

    @property
    def counted(self) -> Prior | None:
        """Counts that are kept beside the run's vectors, if there are any."""
        path = self.path.parent / MARGINALS
        return Prior.of(read_tensors(path)[0]) if path.exists() else None

    def believed(self) -> Believed:
        """What was written down of the answers."""
        tensors = read_tensors(self.path)[0]
        return Believed(*(tensors[name].numpy() for name in ("statements", "probability", "learnt")))

    def learnt(self, but: tuple[int, int] | None = None, prior: Prior | None = None) -> Graph:
        """Unrestricted statements, and those that were answered yes, each as much as its answer made it more probable; without one of so
        many folds, if that is asked for."""
        believed = self.believed()
        weight = worth(believed)
        if but is not None:
            cells = self.questions(prior).cells.cells(believed.statements)
            weight[fold_of(cells, but[1]) == but[0]] = 0
        told = believed.statements[weight > 0]
        splits = {**self.public.splits, "train": np.concatenate([self.public.train, told])}
        given = {name: np.ones(len(array), np.float32) for name, array in splits.items()}
        given["train"][len(self.public.train) :] = weight[weight > 0]
        return replace(self.public, splits=splits, source="", weights=given)


def worth(believed: Believed) -> np.ndarray:
    """How much each statement counts in learning; 0 where its answer says too little."""
    return np.where(believed.learnt >= SMALLEST, believed.learnt, 0).astype(np.float32)


def counts_of(prior: Prior) -> np.ndarray:
    """How often an entity is a head (rows 0 … R−1) and a tail, as far as noisy counts tell: those that stand out as they are, below them
    what the factor model of roles expects."""
    table = prior.table.numpy() if prior.table is not None else _dense(prior)
    table = np.sinh(table)
    found = np.where(table > STANDS, table, np.maximum(table / BELOW, 0)).astype(np.float32)
    return np.concatenate([found[prior.relations :], found[: prior.relations]])


def _dense(prior: Prior) -> np.ndarray:
    table = np.zeros((2 * prior.relations, prior.entities), np.float32)
    assert prior.starts is not None
    assert prior.ids is not None
    assert prior.values is not None
    row = np.repeat(np.arange(len(table)), np.diff(prior.starts.numpy()))
    table[row, prior.ids.numpy()] = prior.values.numpy()
    return table


class AnswersPlan(OrdinaryPlan):
    """Ordinary steps on what is public, or was made so under a promise."""

    guarantee = "dp"

    def __init__(self, task: Task, rows: Rows, rate: float, ledger: Ledger, delta: float) -> None:
        super().__init__(task, rows, rate)
        self.ledger, self._epsilon = ledger, ledger.spent(delta).epsilon

    def epsilon(self) -> float | None:
        return self._epsilon

    def ledger_mark(self) -> str:
        return self.ledger.mark
