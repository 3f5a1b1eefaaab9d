"""A plan couples what a training reads with what each step does: ``batches(epoch)`` and ``step(batch, rate)``.

``OrdinaryPlan`` gives no guarantee and says so in its event. A private plan has the same shape: the loop does not know
which of them it runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from veilgraph.account.events import Event, non_private
from veilgraph.config import TrainConfig
from veilgraph.errors import ConfigError
from veilgraph.load.graph import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rng import Streams
from veilgraph.train import negatives
from veilgraph.train.gradients import (
    Gradients,
    Keep,
    Objective,
    QueryBatch,
    TripleBatch,
    exact,
    sampled,
)
from veilgraph.train.losses import Loss
from veilgraph.train.optim import Optimiser

Batch = TripleBatch | QueryBatch


class Plan(Protocol):
    """What the loop needs of a plan."""

    guarantee: str
    seconds: dict[str, float]

    @property
    def positives(self) -> float:
        """Statements read in an epoch, for the speed that is shown."""

    @property
    def steps_per_epoch(self) -> int:
        """Batches in one epoch."""

    def batches(self, epoch: int) -> Iterator[Any]:
        """The batches of one epoch."""

    def step(self, p: Parameters, optimisers: dict[str, Optimiser], batch: Any, rate: float) -> float:
        """Move the tables; returns the mean loss."""

    def tells(self, batch: Any) -> bool:
        """Whether a batch has a loss that may be shown."""

    def flush(self, p: Parameters) -> None:
        """Called before anything leaves the trainer."""

    def epsilon(self) -> float | None:
        """ε so far."""

    def ledger_mark(self) -> str:
        """What a checkpoint must be able to prove about the ledger."""

    def record(self) -> dict[str, Any]:
        """More for the epoch's line in the trace, which is for the curator."""


def refuse(model: Model, config: TrainConfig) -> None:
    """Raise for settings that contradict each other, before anything is written."""
    if not model.separable and config.candidates == "all":
        raise ConfigError(f"{model.name} is trained on sampled negatives only: set candidates=sampled.")
    if config.candidates == "all" and config.loss not in ("softmax", "softplus"):
        raise ConfigError(f"candidates=all goes with loss softmax or softplus, found {config.loss}.")


def objective_of(config: TrainConfig, entities: int) -> Objective:
    """What a configuration minimises."""
    return Objective(
        Loss(
            config.loss or "softmax",
            config.margin or 0.0,
            config.temperature or 0.0,
            entities if config.loss == "softmax" else 0,
        ),
        config.regulariser or "none",
        config.regulariser_weight or 0.0 if config.regulariser != "none" else 0.0,
        bool(config.reciprocal),
    )


class OrdinaryPlan:
    """Training without privacy: every statement once an epoch, in random order."""

    guarantee = "none"
    event: ClassVar[Event] = non_private(
        "ordinary training: every statement may be recovered from the vectors"
    )

    def __init__(self, graph: Graph, model: Model, config: TrainConfig, streams: Streams) -> None:
        self.model, self.config, self.streams = model, config, streams
        self.entities, self.relations = len(graph.entities), len(graph.relations)
        self.reciprocal = bool(config.reciprocal)
        self.triples = graph.train
        refuse(model, config)
        if self.reciprocal and model.relation_scale is not None:
            model.relation_scale = model.relation_scale.repeat(2)
        self.objective = objective_of(config, self.entities)
        self.questions = _Questions(graph, self.reciprocal) if config.candidates == "all" else None
        self.seconds = {"sample": 0.0, "gradient": 0.0, "update": 0.0}
        self.epoch, self.count = 0, 0  # the step being taken, from which subclasses draw what is theirs

    @property
    def positives(self) -> float:
        """Statements read in an epoch."""
        return len(self.triples)

    @property
    def steps_per_epoch(self) -> int:
        """Batches in one epoch."""
        count = len(self.questions) if self.questions else len(self.triples)
        return -(-count // (self.config.batch or 1))

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of one epoch: the same for the same seed and epoch, whatever came before."""
        count = len(self.questions) if self.questions else len(self.triples)
        order = self.streams.numpy("sampling", epoch).permutation(count)
        drawing = self.streams.numpy("negatives", epoch)
        size = self.config.batch or 1
        self.epoch, self.count = epoch, 0
        for start in range(0, count, size):
            began = time.perf_counter()
            self.count += 1
            chosen = order[start : start + size]
            if self.questions:
                batch: Batch = self.questions.batch(chosen)._replace(keep=self._keep(drawing, len(chosen)))
            else:
                batch = self._triples(chosen, drawing)
            self.seconds["sample"] += time.perf_counter() - began
            yield batch

    def step(self, p: Parameters, optimisers: dict[str, Optimiser], batch: Batch, rate: float) -> float:
        """Move the rows of one batch; returns its mean loss."""
        began = time.perf_counter()
        gradients = self.gradients(p, batch)
        computed = time.perf_counter()
        for name, table, rows in (
            ("entities", p.entities, gradients.entities),
            ("relations", p.relations, gradients.relations),
        ):
            optimisers[name].update(table, rows.ids, rows.values, rate)
        for name, gradient in gradients.weights.items():
            flat = p.weights[name].view(1, -1)
            optimisers[f"weights.{name}"].update(flat, None, gradient.reshape(1, -1), rate)
        self.seconds["gradient"] += computed - began
        self.seconds["update"] += time.perf_counter() - computed
        return gradients.loss

    def tells(self, batch: Batch) -> bool:
        """Ordinary batches hide nothing."""
        return True

    def flush(self, p: Parameters) -> None:
        """Nothing is pending in an ordinary training."""

    def epsilon(self) -> float | None:
        """No ε holds for an ordinary training."""
        return None

    def ledger_mark(self) -> str:
        """An ordinary training charges once, at its beginning."""
        return ""

    def record(self) -> dict[str, Any]:
        """Nothing more."""
        return {}

    def gradients(self, p: Parameters, batch: Batch) -> Gradients:
        """The gradients of one batch."""
        if isinstance(batch, QueryBatch):
            return exact(self.model, p, batch, self.objective)
        return sampled(self.model, p, batch, self.objective)

    def _triples(self, chosen: np.ndarray, drawing: np.random.Generator) -> TripleBatch:
        count, size = len(chosen), min(self.config.chunk or 1, len(chosen))
        chunks = -(-count // size)
        weight: Tensor | None = None
        if chunks * size != count:  # the last batch: fill its last chunk with statements that count nothing
            weight = torch.zeros(chunks * size)
            weight[:count] = 1
            chosen = np.resize(chosen, chunks * size)
        wrong = self._negatives(drawing, 2 * chunks)
        triples = torch.from_numpy(self.triples[chosen].astype(np.int64))
        return TripleBatch(triples, torch.from_numpy(wrong), weight, self._keep(drawing, 2 * len(triples)))

    def _negatives(self, drawing: np.random.Generator, sides: int) -> np.ndarray:
        """``[sides, negatives]`` wrong answers from the vocabulary."""
        return negatives.draw(drawing, sides, self.config.negatives or 1, self.entities)

    def _keep(self, drawing: np.random.Generator, questions: int) -> Keep | None:
        """Dropout masks for so many questions."""
        share = self.config.dropout or 0.0
        if not share or not self.model.separable:
            return None
        kept = drawing.random((2, questions, self.model.entity_width), dtype=np.float32) >= share
        return Keep(*torch.from_numpy(kept).float().div_(1 - share))


class _Questions:
    """The distinct questions of the training statements, both directions, with their answers."""

    def __init__(self, graph: Graph, reciprocal: bool) -> None:
        triples, self.relations = graph.train.astype(np.int64), len(graph.relations)
        self.reciprocal = reciprocal
        head, relation, tail = triples.T
        # «which tail?» uses relation ids below R, «which head?» those from R on
        key = np.concatenate(
            [head * 2 * self.relations + relation, (tail * 2 + 1) * self.relations + relation]
        )
        answers = np.concatenate([tail, head])
        order = np.argsort(key, kind="stable")
        self.keys, start = np.unique(key[order], return_index=True)
        self.start = np.append(start, len(key))
        self.answers = answers[order]

    def __len__(self) -> int:
        return len(self.keys)

    def batch(self, chosen: np.ndarray) -> QueryBatch:
        key = self.keys[chosen]
        lengths = self.start[chosen + 1] - self.start[chosen]
        owner = np.repeat(np.arange(len(chosen)), lengths)
        place = (
            np.arange(len(owner))
            - np.repeat(np.cumsum(lengths) - lengths, lengths)
            + self.start[chosen][owner]
        )
        relation = key % (2 * self.relations)
        backward = relation >= self.relations
        inverse = np.zeros(len(key), bool) if self.reciprocal else backward
        relation = relation if self.reciprocal else relation % self.relations
        tensors: Any = map(
            torch.from_numpy, (key // (2 * self.relations), relation, inverse, owner, self.answers[place])
        )
        return QueryBatch(*tensors)._replace(backward=torch.from_numpy(backward))
