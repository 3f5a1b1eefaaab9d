"""A graph convolution in front of any scorer: entity rows are made from neighbours, and the scorer's gradient goes back through it.

Everything the encoder learns is among the parameters' weights (``encoder.…``), so checkpoints, resuming and federations are those of
any training; ``p.entities`` holds the rows it makes from all statements, brought up to date by ``flush``. A step sends messages along
a sample of the statements, never along those it asks about: an encoder that sees the answer learns nothing.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from veilgraph.config import ENCODER, TrainConfig
from veilgraph.errors import ConfigError
from veilgraph.load.graph import Graph
from veilgraph.load.labels import read_labels
from veilgraph.models.base import Model
from veilgraph.models.gcn import RECIPES, SCORES, Edges, Network, Recipe, score
from veilgraph.models.gcn.transport import TRANSPORTS
from veilgraph.models.parameters import Parameters
from veilgraph.rng import Streams
from veilgraph.train.gradients import QueryBatch
from veilgraph.train.optim import Optimiser
from veilgraph.train.plan import Batch, OrdinaryPlan

PREFIX, BASES, HEAD = "encoder.", "encoder.bases", "encoder.head"
HIDDEN = 0.5  # share of rows that are zero in a step, where labels are learnt
CHUNK = 1 << 18  # statements whose messages are in memory at a time, where all are sent


def refuse(graph: Graph, config: TrainConfig) -> None:
    """Raise for settings that contradict each other, or that would do nothing, before anything is written."""
    if config.encoder is None:
        given = [name for name in ENCODER if getattr(config, name) is not None]
        if given:
            raise ConfigError(
                f"{', '.join(given)} would do nothing without an encoder: name one with --encoder kegcn, rgcn, wgcn or compgcn."
            )
        return
    recipe_of(config)
    if config.task == "labels":
        read_labels(graph)


def recipe_of(config: TrainConfig) -> Recipe:
    """Which network an encoder is."""
    found = RECIPES[config.encoder or "kegcn"]
    if config.encoder_score is not None:
        if config.encoder != "kegcn":
            raise ConfigError(
                f"encoder_score belongs to kegcn: {config.encoder} is {config.encoder} by its own."
            )
        score(config.encoder_score)
        found = replace(found, score=config.encoder_score)
    return found.with_bases(config.encoder_bases or 0)


def network_of(graph: Graph, width: int, config: TrainConfig) -> Network:
    """An untrained network for a graph; its rows go on beside what is made of them, except where they could memorise labels."""
    recipe = recipe_of(config)
    many = SCORES[recipe.score].multiple_of
    if width % many:
        raise ConfigError(f"score {recipe.score} needs rows of a multiple of {many} numbers; found {width}.")
    widths = [width] * ((config.encoder_layers or 1) + 1)
    labels = config.task == "labels"
    return Network(
        recipe,
        len(graph.entities),
        len(graph.relations),
        widths,
        by_others=labels,
        hidden=HIDDEN if labels else 0.0,
        skip=not labels,
        chunk=CHUNK,
    )


def encoder_weights(
    graph: Graph, model: Model, config: TrainConfig, rng: np.random.Generator
) -> dict[str, Tensor]:
    """What an encoder starts from; all matrices that relations mix are one table, which a federation may share."""
    torch.manual_seed(int(rng.integers(2**31)))
    network = network_of(graph, model.entity_width, config)
    found = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    shared = _shared(found)
    made = {f"{PREFIX}{name}": tensor for name, tensor in found.items() if name not in shared}
    made[BASES] = torch.cat([found[name].flatten(1) for name in shared])
    if config.task == "labels":
        labels = len(read_labels(graph).names)
        made[HEAD] = torch.zeros(model.entity_width + 1, labels)
    return made


def _shared(names: object) -> list[str]:
    """The names of the matrices of all layers, in both directions."""
    return sorted(name for name in names if str(name).endswith(".matrices"))  # type: ignore[attr-defined]


def encoded_plan(graph: Graph, model: Model, config: TrainConfig, streams: Streams) -> EncodedPlan:
    """A plan for what the encoder is to learn from."""
    return (LabelPlan if config.task == "labels" else EncodedPlan)(graph, model, config, streams)


class EncodedPlan(OrdinaryPlan):
    """Statements asked about as ever, of rows that an encoder makes."""

    anchor: Tensor | None = None  # the federation's bases, which transport is paid to

    def __init__(self, graph: Graph, model: Model, config: TrainConfig, streams: Streams) -> None:
        super().__init__(graph, model, config, streams)
        self.graph = graph
        self.network = network_of(graph, model.entity_width, config)
        self.shared = _shared(dict(self.network.named_parameters()))
        self.all = Edges(self.triples, self.entities, self.relations)
        self.keys = graph.keys(self.triples)

    # --- encoding -------------------------------------------------------------------------------------------------
    def encode(self, weights: dict[str, Tensor], edges: Edges) -> Tensor:
        """``[entities, width]`` rows from these edges."""
        own = {
            name.removeprefix(PREFIX): tensor
            for name, tensor in weights.items()
            if name.startswith(PREFIX) and name not in (BASES, HEAD)
        }
        shapes = dict(self.network.named_parameters())
        start = 0
        for name in self.shared:
            count = len(shapes[name])
            own[name] = weights[BASES][start : start + count].view(shapes[name].shape)
            start += count
        self.network.train(torch.is_grad_enabled())
        if torch.is_grad_enabled():
            torch.manual_seed(int(self.streams.numpy("messages", self.epoch, self.count, 1).integers(2**31)))
        found: Tensor = functional_call(self.network, own, (edges,))
        return found

    def flush(self, p: Parameters) -> None:
        """Entity rows as all statements make them."""
        with torch.no_grad():
            p.entities.copy_(self.encode(p.weights, self.all))

    # --- a step ---------------------------------------------------------------------------------------------------
    def step(self, p: Parameters, optimisers: dict[str, Optimiser], batch: Batch, rate: float) -> float:
        """Move relations and encoder; returns the mean loss."""
        began = time.perf_counter()
        with torch.enable_grad():
            weights = {
                name: tensor.detach().requires_grad_()
                for name, tensor in p.weights.items()
                if name.startswith(PREFIX)
            }
            rows = self.encode(weights, self._messages(batch))
        loss, on_rows = self._loss(p, optimisers, batch, rows.detach(), weights, rate)
        with torch.enable_grad():
            total = (rows * on_rows).sum()
            if self.anchor is not None and self.config.transport and self.config.transport_weight:
                total = total + self.config.transport_weight * self._distance(weights[BASES])
            given = [tensor for name, tensor in weights.items() if name != HEAD]
            gradients = torch.autograd.grad(total, given, allow_unused=True)
        computed = time.perf_counter()
        names = [name for name in weights if name != HEAD]
        for name, gradient in zip(names, gradients):
            if gradient is not None:
                self._move(p, optimisers, name, gradient, rate)
        self.seconds["gradient"] += computed - began
        self.seconds["update"] += time.perf_counter() - computed
        return loss

    def _loss(
        self,
        p: Parameters,
        optimisers: dict[str, Optimiser],
        batch: Batch,
        rows: Tensor,
        weights: dict[str, Tensor],
        rate: float,
    ) -> tuple[float, Tensor]:
        """The mean loss and its derivative on the encoded rows; what is not the encoder's is moved here."""
        found = self.gradients(Parameters(rows, p.relations, p.weights), batch)
        optimisers["relations"].update(p.relations, found.relations.ids, found.relations.values, rate)
        for name, gradient in found.weights.items():
            self._move(p, optimisers, name, gradient, rate)
        if found.entities.ids is None:
            return found.loss, found.entities.values
        dense = torch.zeros_like(rows)
        dense[found.entities.ids] = found.entities.values
        return found.loss, dense

    def _move(
        self, p: Parameters, optimisers: dict[str, Optimiser], name: str, gradient: Tensor, rate: float
    ) -> None:
        flat = p.weights[name].view(1, -1)
        optimisers[f"weights.{name}"].update(flat, None, gradient.reshape(1, -1), rate)

    def _distance(self, bases: Tensor) -> Tensor:
        assert self.anchor is not None
        width = self.model.entity_width
        return TRANSPORTS[self.config.transport or "sorted"](
            bases.view(-1, width, width), self.anchor.view(-1, width, width)
        )

    def _messages(self, batch: Batch) -> Edges:
        """A sample of the statements, without those the batch asks about."""
        rng = self.streams.numpy("messages", self.epoch, self.count)
        most = min(self.config.encoder_edges or len(self.triples), len(self.triples))
        chosen = rng.choice(len(self.triples), most, replace=False, shuffle=False)
        asked = np.isin(self.keys[chosen], self.graph.keys(_asked(batch, self.relations)))
        return Edges(self.triples[chosen[~asked]], self.entities, self.relations)


def _asked(batch: Batch, relations: int) -> np.ndarray:
    """``[n, 3]`` the statements a batch asks about."""
    if not isinstance(batch, QueryBatch):
        return batch.triples.numpy()
    source, answer = batch.source[batch.owner].numpy(), batch.answers.numpy()
    relation = batch.relation[batch.owner].numpy() % relations
    backward = batch.backward[batch.owner].numpy()
    return np.stack([np.where(backward, answer, source), relation, np.where(backward, source, answer)], 1)


class LabelPlan(EncodedPlan):
    """Labels of entities, told from encoded rows by a linear layer; all statements carry messages."""

    def __init__(self, graph: Graph, model: Model, config: TrainConfig, streams: Streams) -> None:
        super().__init__(graph, model, config, streams)
        from veilgraph.train.classify.folds import folds_of, truth_of

        labels = read_labels(graph)
        self.several = labels.several
        self.folds = folds_of(labels, self.entities, 0.5, config.seed)
        self.truth = torch.from_numpy(truth_of(labels, self.entities))

    @property
    def positives(self) -> float:
        """Entities learnt from in an epoch."""
        return len(self.folds.train)

    @property
    def steps_per_epoch(self) -> int:
        """All of them at once."""
        return 1

    def batches(self, epoch: int):  # type: ignore[no-untyped-def]
        """One step an epoch."""
        self.epoch, self.count = epoch, 0
        yield torch.from_numpy(self.folds.train)

    def _messages(self, batch: object) -> Edges:
        return self.all

    def _loss(  # type: ignore[override]
        self,
        p: Parameters,
        optimisers: dict[str, Optimiser],
        batch: Tensor,
        rows: Tensor,
        weights: dict[str, Tensor],
        rate: float,
    ) -> tuple[float, Tensor]:
        with torch.enable_grad():
            leaf, head = rows.requires_grad_(), weights[HEAD]
            out = leaf[batch] @ head[:-1] + head[-1]
            wanted = self.truth[batch]
            if self.several:
                loss = functional.binary_cross_entropy_with_logits(out, wanted)
            else:
                loss = functional.cross_entropy(out, wanted)
            on_rows, on_head = torch.autograd.grad(loss, [leaf, head])
        self._move(p, optimisers, HEAD, on_head, rate)
        return float(loss.detach()), on_rows

    def figures(self, p: Parameters) -> dict[str, float]:
        """accuracy and macro_f1 on the test fold. For the curator."""
        from veilgraph.evaluate.classification import measure

        head, test = p.weights[HEAD], self.folds.test
        out = (p.entities[torch.from_numpy(test)] @ head[:-1] + head[-1]).numpy()
        return measure(out, self.truth[torch.from_numpy(test)].numpy())
