"""A plan couples what a training reads with what each step does: ``batches(epoch)`` and ``step(batch, pace)``.

There are two: ``OrdinaryPlan`` gives no guarantee and says so in its event, ``private.plan.PrivatePlan`` has the same shape. Both take
rows from anywhere (``rows``); the loop does not know which of them it runs.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from veilgraph.account.events import Event, non_private
from veilgraph.models.parameters import Parameters
from veilgraph.train.optim import Optimiser
from veilgraph.train.rows import Place, Rows
from veilgraph.train.tasks import Task


class Plan(ABC):
    """What the loop needs of a plan; what is not said otherwise is that of a training without a promise."""

    def __init__(self) -> None:
        self.seconds = {"sample": 0.0, "gradient": 0.0, "update": 0.0}

    @property
    @abstractmethod
    def positives(self) -> float:
        """Statements read in an epoch, for the speed that is shown."""

    @property
    @abstractmethod
    def steps_per_epoch(self) -> int:
        """Batches in one epoch."""

    @abstractmethod
    def batches(self, epoch: int) -> Iterator[Any]:
        """The batches of one epoch."""

    @abstractmethod
    def step(self, p: Parameters, optimisers: dict[str, Optimiser], batch: Any, pace: float) -> float:
        """Move the tables by ``pace`` times the usual step; returns the mean loss."""

    @abstractmethod
    def flush(self, p: Parameters) -> None:
        """Called before anything leaves the trainer: rows as everything learnt makes them."""

    def tells(self, batch: Any) -> bool:
        """Whether a batch has a loss that may be shown."""
        return True

    def pay(self, first: int, last: int) -> bool:
        """Have what these epochs cost on the ledger (``last`` not among them), for a training that stops between epochs; False if
        the budget allows no step."""
        return True

    def epsilon(self) -> float | None:
        """ε so far; None where nothing is promised."""
        return None

    def ledger_mark(self) -> str:
        """What a checkpoint must be able to prove about the ledger."""
        return ""

    def end(self, epoch: int, why: str) -> None:
        """The training is over after this epoch, whatever was planned: write down what was due."""

    def record(self) -> dict[str, Any]:
        """More for the epoch's line in the trace, which is for the curator."""
        return {}

    def figures(self, p: Parameters) -> dict[str, float] | None:
        """How good what was learnt is, where the task itself says so. For the curator."""
        return None


class OrdinaryPlan(Plan):
    """Training without privacy: all of a task once an epoch."""

    guarantee = "none"
    event: ClassVar[Event] = non_private(
        "ordinary training: every statement may be recovered from the vectors"
    )

    def __init__(self, task: Task, rows: Rows, rate: float) -> None:
        super().__init__()
        self.task, self.rows, self.rate = task, rows, rate
        self.place = Place(0, 0)  # of the step being taken

    @property
    def positives(self) -> float:
        return self.task.positives

    @property
    def steps_per_epoch(self) -> int:
        return self.task.steps

    def batches(self, epoch: int) -> Iterator[Any]:
        given = self.task.batches(epoch)
        self.place = Place(epoch, 0)
        while True:
            began = time.perf_counter()
            batch = next(given, None)
            self.seconds["sample"] += time.perf_counter() - began
            if batch is None:
                return
            self.place = Place(epoch, self.place.step + 1)
            yield batch

    def step(self, p: Parameters, optimisers: dict[str, Optimiser], batch: Any, pace: float) -> float:
        """Move the rows of one batch; returns its mean loss."""
        began = time.perf_counter()
        made, rate = self.rows.of(p, batch, self.place), pace * self.rate
        found = self.task.gradients(made.p, made.batch)
        computed = time.perf_counter()
        self.rows.pull(p, optimisers, made, found.entities, rate)
        optimisers["relations"].update(p.relations, found.relations.ids, found.relations.values, rate)
        for name, gradient in found.weights.items():
            flat = p.weights[name].view(1, -1)
            optimisers[f"weights.{name}"].update(flat, None, gradient.reshape(1, -1), rate)
        self.seconds["gradient"] += computed - began
        self.seconds["update"] += time.perf_counter() - computed
        return found.loss

    def flush(self, p: Parameters) -> None:
        self.rows.flush(p)

    def figures(self, p: Parameters) -> dict[str, float] | None:
        return self.task.figures(p)
