"""The training loop: epochs of a plan, validation, early stopping, checkpoints, trace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from veilgraph.config import Settled, TrainConfig
from veilgraph.errors import DivergedError
from veilgraph.files import append_line
from veilgraph.layout import TRACE
from veilgraph.load.graph import Graph
from veilgraph.models.base import Model
from veilgraph.rank.metrics import summarise
from veilgraph.rank.ranking import Ranker
from veilgraph.rng import Streams
from veilgraph.train.plan import Plan
from veilgraph.train.schedules import factor
from veilgraph.train.state import TrainingState

CHECKPOINT_SECONDS = 20.0
PLATEAU = 2e-4  # a relative gain below this counts as standing still
AVERAGES_PER_EPOCH = 16  # the moving average costs as many passes over the tables, not one per step


@dataclass(frozen=True)
class Progress:
    """How a training is doing, after some steps."""

    epoch: int
    epochs: int
    step: int
    steps: int  # in this epoch
    loss: float | None  # None where only private steps are taken: theirs is confidential
    mrr: float | None
    positives_per_second: float
    seconds_left: float
    epsilon: float | None = None
    judged: str = "all statements"  # what ``mrr`` is of


Listener = Callable[[Progress], None]


def run_epochs(
    plan: Plan,
    state: TrainingState,
    validation: Validation,
    settings: Settled,
    folder: Path | None,
    *,
    epochs: int,
    until: int | None = None,
    listener: Listener | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> None:
    """Take the plan's steps from where the state is to the end of the last epoch, or until validation stalls.

    ``until`` pauses after an earlier epoch: the training is not over, and goes on when called again.

    Reads confidential data: whatever the plan reads. Releases: nothing by itself; the plan flushes its noise before
    anything is saved, averaged or compared.
    """
    clock = _Clock(folder, plan, state, checkpoint_seconds)
    with torch.no_grad():
        while not state.finished and state.epoch < (epochs if until is None else until):
            record = _epoch(plan, state, settings, epochs, listener, clock)
            if validation.due(state.epoch) or (state.epoch == epochs and validation.wanted):
                plan.flush(state.parameters)
                record |= validation.judge(state)
            if state.epoch >= epochs or (
                validation.wanted and 0 < settings.judging.patience <= state.stalled
            ):
                state.finished = True
            if folder is not None:
                append_line(folder / TRACE, record)
                clock.tick(now=state.finished)
    plan.flush(state.parameters)


class _Clock:
    """Writes a checkpoint when enough time has passed."""

    def __init__(self, folder: Path | None, plan: Plan, state: TrainingState, seconds: float) -> None:
        self.folder, self.plan, self.state = folder, plan, state
        self.seconds, self.saved = seconds, time.perf_counter()

    def tick(self, *, now: bool = False) -> None:
        if self.folder is not None and (now or time.perf_counter() - self.saved > self.seconds):
            self.plan.flush(self.state.parameters)
            self.state.ledger = self.plan.ledger_mark()
            self.state.save(self.folder)
            self.saved = time.perf_counter()


def _epoch(
    plan: Plan,
    state: TrainingState,
    settings: Settled,
    epochs: int,
    listener: Listener | None,
    clock: _Clock,
) -> dict[str, object]:
    """The steps of one epoch that are still to do; returns its line for the trace."""
    began, first, count, telling = time.perf_counter(), state.step, 0, 0
    steps, told = plan.steps_per_epoch, began
    plan.seconds = dict.fromkeys(plan.seconds, 0.0)
    pause = max(1, steps // AVERAGES_PER_EPOCH)
    averaging = settings.steps.averaging
    share = 1 - math.exp(-pause / max(steps, 1) / averaging) if averaging else 1.0
    for batch in plan.batches(state.epoch):
        count, telling = count + 1, telling + plan.tells(batch)
        if count <= first:  # done before the checkpoint: drawn again only to keep the random streams in step
            continue
        done = (state.epoch + (count - 1) / max(steps, 1)) / epochs
        pace = factor(settings.steps.schedule, done) * state.rate_factor
        loss = plan.step(state.parameters, state.optimisers, batch, pace)
        _refuse_what_is_no_number(loss, state, settings)
        state.step, state.loss = count, state.loss + loss
        if state.average is not None and (count % pause == 0 or count == steps):
            plan.flush(state.parameters)
            state.move_average(share)
        clock.tick()
        now = time.perf_counter()
        if listener is not None and (now - told > 0.2 or count == steps):
            told = now
            listener(_progress(plan, state, settings, epochs, (count - first) / (now - began), telling))
    return _line(plan, state, count, first, telling, time.perf_counter() - began)


def _refuse_what_is_no_number(loss: float, state: TrainingState, settings: Settled) -> None:
    if not math.isfinite(loss):
        raise DivergedError(
            f"the loss became {loss} in epoch {state.epoch + 1}: the training diverged. "
            f"Lower learning_rate (now {settings.steps.rate:g}), or add a regulariser."
        )


def _progress(
    plan: Plan, state: TrainingState, settings: Settled, epochs: int, speed: float, telling: int
) -> Progress:
    steps, count = plan.steps_per_epoch, state.step
    return Progress(
        state.epoch + 1,
        epochs,
        count,
        steps,
        state.loss / telling if telling else None,
        state.best_mrr if state.best_mrr >= 0 else None,
        plan.positives * speed / max(steps, 1),
        (steps - count + (epochs - state.epoch - 1) * steps) / speed,
        plan.epsilon(),
        judged(settings),
    )


def _line(
    plan: Plan, state: TrainingState, count: int, first: int, telling: int, seconds: float
) -> dict[str, object]:
    """An epoch's line in the trace; afterwards the state is at the beginning of the next."""
    total, positives = state.loss, plan.positives
    state.epoch, state.step, state.loss = state.epoch + 1, 0, 0.0
    state.steps += count
    state.seconds += seconds
    return {
        "epoch": state.epoch,
        "loss": total / telling if telling else None,
        "steps": state.steps,
        "seconds": round(seconds, 4),
        **{f"{name}_seconds": round(value, 4) for name, value in plan.seconds.items()},
        "positives_per_second": round(positives * (count - first) / max(count, 1) / max(seconds, 1e-9), 1),
        "epsilon": plan.epsilon(),
        **plan.record(),
    }


def judged(settings: Settled | TrainConfig) -> str:
    """What validation is of: where something is promised, of statements anybody may read."""
    return "all statements" if settings.open_data else "unrestricted statements"


class Validation:
    """Filtered MRR on part of a graph's validation split, and what follows from it.

    Under privacy the graph holds only unrestricted statements, so that what follows costs nothing.
    """

    def __init__(self, graph: Graph, model: Model, settings: Settled, streams: Streams) -> None:
        self.settings, self.every = settings, settings.judging.every
        statements = graph.splits.get("valid", np.empty((0, 3), np.int32))
        self.wanted = self.every > 0 and len(statements) > 0
        if not self.wanted:
            return
        chosen = streams.numpy("validation").permutation(len(statements))[: settings.judging.queries]
        self.statements = statements[np.sort(chosen)]
        self.ranker = Ranker(graph.triples, len(graph.relations))
        self.model, self.reciprocal = model, settings.scorer.reciprocal

    def due(self, epoch: int) -> bool:
        return self.wanted and epoch % self.every == 0

    def judge(self, state: TrainingState) -> dict[str, object]:
        """Measure, remember the best, and slow down or give up where it stalls."""
        began = time.perf_counter()
        ranks = self.ranker.rank(self.model, state.current, self.statements, reciprocal=self.reciprocal)
        mrr = summarise(ranks.rank, ranks.candidates)["mrr"]
        plateau = self.settings.steps.schedule == "plateau"
        moved = mrr > state.best_mrr * (1 + PLATEAU) if plateau else mrr > state.best_mrr
        if mrr > state.best_mrr:
            state.best_mrr = mrr
            state.keep_best()
        state.stalled = 0 if moved else state.stalled + 1
        if plateau and state.stalled and state.stalled % 2 == 0:
            state.rate_factor *= 0.5
        return {
            "valid_mrr": mrr,
            "valid_of": judged(self.settings),
            "validate_seconds": round(time.perf_counter() - began, 4),
        }
