"""Statements: which tail, and which head?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from veilgraph.config import Settled, TrainConfig
from veilgraph.errors import ConfigError
from veilgraph.load.graph import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rng import Streams
from veilgraph.train import losses, negatives
from veilgraph.train.batches import Batch, Keep, QueryBatch, TripleBatch
from veilgraph.train.gradients import Gradients, Objective, exact, sampled
from veilgraph.train.tasks.base import Task


def refuse(model: Model, config: TrainConfig) -> None:
    """Raise for settings that contradict each other, before anything is written."""
    if not model.separable and config.candidates == "all":
        raise ConfigError(f"{model.name} is trained on sampled negatives only: set candidates=sampled.")
    if config.candidates == "all" and config.loss not in ("softmax", "softplus"):
        raise ConfigError(f"candidates=all goes with loss softmax or softplus, found {config.loss}.")


def objective_of(settings: Settled, entities: int) -> Objective:
    """What a configuration minimises."""
    aim = settings.aim
    whole = entities if aim.loss == "softmax" else 0
    loss = losses.create(aim.loss, aim.margin, aim.temperature, whole)
    return Objective(loss, aim.regulariser, aim.weight, settings.scorer.reciprocal)


class Links(Task):
    """Every statement once an epoch, in random order, held against wrong answers."""

    def __init__(
        self,
        graph: Graph,
        model: Model,
        settings: Settled,
        streams: Streams,
        candidates: np.ndarray | None = None,
    ) -> None:
        self.model, self.settings, self.streams = model, settings, streams
        self.entities, self.triples = len(graph.entities), graph.train
        self.weights = graph.weight("train")
        self.candidates = candidates
        self.objective = objective_of(settings, self.entities)
        self.questions = _Questions(graph, settings.scorer.reciprocal) if settings.wrong.all else None

    @property
    def positives(self) -> float:
        return len(self.triples)

    @property
    def _count(self) -> int:
        return len(self.questions) if self.questions else len(self.triples)

    @property
    def steps(self) -> int:
        return -(-self._count // self.settings.steps.batch)

    def batches(self, epoch: int) -> Iterator[Batch]:
        order = self.streams.numpy("sampling", epoch).permutation(self._count)
        drawing = self.streams.numpy("negatives", epoch)
        size = self.settings.steps.batch
        for start in range(0, self._count, size):
            chosen = order[start : start + size]
            if self.questions:
                yield self.questions.batch(chosen)._replace(keep=self._keep(drawing, len(chosen)))
            else:
                yield self._triples(chosen, drawing)

    def gradients(self, p: Parameters, batch: Batch) -> Gradients:
        ask: Any = exact if isinstance(batch, QueryBatch) else sampled
        found: Gradients = ask(self.model, p, batch, self.objective)
        return found

    def _triples(self, chosen: np.ndarray, drawing: np.random.Generator) -> TripleBatch:
        count, size = len(chosen), min(self.settings.wrong.chunk, len(chosen))
        chunks = -(-count // size)
        weight: Tensor | None = None
        if self.weights is not None or chunks * size != count:
            weight = torch.zeros(chunks * size)  # the last chunk is filled with statements that count nothing
            weight[:count] = 1.0 if self.weights is None else torch.from_numpy(self.weights[chosen])
            chosen = np.resize(chosen, chunks * size)
        among = self.entities if self.candidates is None else len(self.candidates)
        wrong = negatives.draw(drawing, 2 * chunks, self.settings.wrong.negatives, among)
        wrong = wrong if self.candidates is None else self.candidates[wrong]
        triples = torch.from_numpy(self.triples[chosen].astype(np.int64))
        return TripleBatch(triples, torch.from_numpy(wrong), weight, self._keep(drawing, 2 * len(triples)))

    def _keep(self, drawing: np.random.Generator, questions: int) -> Keep | None:
        """Dropout masks for so many questions."""
        share = self.settings.steps.dropout
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
        weights = graph.weight("train")
        self.weights = None if weights is None else np.tile(weights, 2)[order]

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
        weight = None if self.weights is None else torch.from_numpy(self.weights[place])
        return QueryBatch(*tensors)._replace(backward=torch.from_numpy(backward), weight=weight)
