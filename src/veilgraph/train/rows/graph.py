"""A graph convolution in front of any scorer: entity rows are made from neighbours, and what pulls at them goes back through it.

Everything it learns is among the weights (``encoder.…``); ``p.entities`` holds the rows it makes from all statements. A step sends
messages along a sample of the statements, never along those it asks about: an encoder that sees the answer learns nothing. Where labels
are asked for, all statements carry messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from veilgraph.config import TrainConfig
from veilgraph.config.asked import ENCODER
from veilgraph.config.settled import Encoder
from veilgraph.errors import ConfigError, PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.load.labels import read_labels
from veilgraph.models.gcn import SCORES, Edges, Network, Recipe, recipe_of, score
from veilgraph.models.gcn.transport import transport
from veilgraph.models.parameters import Parameters
from veilgraph.rng import Streams
from veilgraph.train.batches import Batch, LabelBatch, QueryBatch
from veilgraph.train.gradients import RowGradient
from veilgraph.train.rows.base import Made, Optimisers, Place, Rows
from veilgraph.train.tasks.labels import HEAD

PREFIX, BASES = "encoder.", "encoder.bases"
HIDDEN = 0.5  # share of rows that are zero in a step, where labels are learnt
CHUNK = 1 << 18  # statements whose messages are in memory at a time, where all are sent


def recipe_for(name: str, messages: str, bases: int) -> Recipe:
    """Which network an encoder is; ``messages`` names the score whose gradients are KE-GCN's."""
    found = recipe_of(name)
    if messages:
        if name != "kegcn":
            raise ConfigError(f"encoder_score belongs to kegcn: {name} is {name} by its own.")
        score(messages)
        found = replace(found, score=messages)
    return found.with_bases(bases)


def network_of(graph: Graph, width: int, encoder: Encoder) -> Network:
    """An untrained network for a graph; its rows go on beside what is made of them, except where they could memorise labels."""
    recipe = recipe_for(encoder.name, encoder.score, encoder.bases)
    many = SCORES[recipe.score].multiple_of
    if width % many:
        raise ConfigError(f"score {recipe.score} needs rows of a multiple of {many} numbers; found {width}.")
    labels = encoder.task == "labels"
    return Network(
        recipe,
        len(graph.entities),
        len(graph.relations),
        [width] * (encoder.layers + 1),
        by_others=labels,
        hidden=HIDDEN if labels else 0.0,
        skip=not labels,
        chunk=CHUNK,
    )


class GraphRows(Rows):
    """Rows made from neighbours' rows."""

    prefix = PREFIX

    def __init__(self, graph: Graph, width: int, encoder: Encoder, streams: Streams) -> None:
        self.graph, self.width, self.encoder, self.streams = graph, width, encoder, streams
        self.triples = graph.train
        self.network = network_of(graph, width, encoder)
        self.shapes = {name: parameter.shape for name, parameter in self.network.named_parameters()}
        self.shared = _shared(self.shapes)
        self.all = Edges(self.triples, len(graph.entities), len(graph.relations))
        self.keys = graph.keys(self.triples)

    @classmethod
    def refuse(cls, graph: Graph, config: TrainConfig) -> None:
        if config.encoder is None:
            given = [name for name in ENCODER if getattr(config, name) is not None]
            if given:
                raise ConfigError(
                    f"{', '.join(given)} would do nothing without an encoder: name one with --encoder kegcn, rgcn, wgcn or compgcn."
                )
            return
        if config.private:
            raise PrivacyError(
                "an encoder sends messages along every statement, and no private version of it is sound here: leave --encoder or "
                "--epsilon out. Labels can be learnt with a guarantee: veil classify --guarantee."
            )
        recipe_for(config.encoder, config.encoder_score or "", config.encoder_bases or 0)
        if config.task == "labels":
            read_labels(graph)
            if config.drop_confidential:
                raise PrivacyError(
                    "task labels reads labels as they are, and drop_confidential promises: use veil classify."
                )

    def start(self, rng: np.random.Generator, streams: Streams) -> dict[str, Tensor]:
        """All matrices that relations mix are one table, which a federation may share."""
        torch.manual_seed(int(rng.integers(2**31)))
        network = network_of(self.graph, self.width, self.encoder)
        found = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
        made = {f"{PREFIX}{name}": tensor for name, tensor in found.items() if name not in self.shared}
        return {**made, BASES: torch.cat([found[name].flatten(1) for name in self.shared])}

    def own(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:  # type: ignore[override]
        return {name: w for name, w in weights.items() if not name.startswith(PREFIX) or name == HEAD}

    # --- making rows ----------------------------------------------------------------------------------------------
    def of(self, p: Parameters, batch: Batch | LabelBatch, place: Place) -> Made:
        if isinstance(batch, LabelBatch):
            place = Place(place.epoch, 0)  # one step an epoch
        with torch.enable_grad():
            leaves = {
                name: tensor.detach().requires_grad_()
                for name, tensor in p.weights.items()
                if name.startswith(PREFIX) and name != HEAD
            }
            torch.manual_seed(int(self.streams.numpy("messages", *place, 1).integers(2**31)))
            rows = self.encode(leaves, self._messages(batch, place))
        return Made(Parameters(rows.detach(), p.relations, self.own(p.weights)), batch, (rows, leaves))

    def encode(self, weights: dict[str, Tensor], edges: Edges) -> Tensor:
        """``[entities, width]`` rows from these edges."""
        own = {
            name.removeprefix(PREFIX): tensor
            for name, tensor in weights.items()
            if name.startswith(PREFIX) and name not in (BASES, HEAD)
        }
        start = 0
        for name in self.shared:
            count = self.shapes[name][0]
            own[name] = weights[BASES][start : start + count].view(self.shapes[name])
            start += count
        self.network.train(torch.is_grad_enabled())
        found: Tensor = functional_call(self.network, own, (edges,))
        return found

    def _messages(self, batch: Batch | LabelBatch, place: Place) -> Edges:
        """A sample of the statements, without those the batch asks about."""
        if isinstance(batch, LabelBatch):
            return self.all
        rng = self.streams.numpy("messages", *place)
        most = min(self.encoder.edges or len(self.triples), len(self.triples))
        chosen = rng.choice(len(self.triples), most, replace=False, shuffle=False)
        asked = np.isin(self.keys[chosen], self.graph.keys(asked_about(batch, len(self.graph.relations))))
        return Edges(self.triples[chosen[~asked]], len(self.graph.entities), len(self.graph.relations))

    # --- learning -------------------------------------------------------------------------------------------------
    def pull(
        self, p: Parameters, optimisers: Optimisers, made: Made, gradient: RowGradient, rate: float
    ) -> None:
        rows, leaves = made.kept
        on_rows = gradient.values
        if gradient.ids is not None:
            on_rows = torch.zeros_like(rows)
            on_rows[gradient.ids] = gradient.values
        with torch.enable_grad():
            total = (rows * on_rows).sum()
            if self.anchor is not None and self.encoder.transport_weight:
                total = total + self.encoder.transport_weight * self._distance(leaves[BASES])
            found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        for name, one in zip(leaves, found):
            if one is not None:
                flat = p.weights[name].view(1, -1)
                optimisers[f"weights.{name}"].update(flat, None, one.reshape(1, -1), rate)

    def _distance(self, bases: Tensor) -> Tensor:
        assert self.anchor is not None
        shape = (-1, self.width, self.width)
        return transport(self.encoder.transport)(bases.view(shape), self.anchor.view(shape))

    def flush(self, p: Parameters) -> None:
        with torch.no_grad():
            p.entities.copy_(self.encode(p.weights, self.all))


def _shared(names: Iterable[str]) -> list[str]:
    """The names of the matrices of all layers, in both directions."""
    return sorted(name for name in names if name.endswith(".matrices"))


def asked_about(batch: Batch, relations: int) -> np.ndarray:
    """``[n, 3]`` the statements a batch asks about."""
    if not isinstance(batch, QueryBatch):
        return batch.triples.numpy()
    source, answer = batch.source[batch.owner].numpy(), batch.answers.numpy()
    relation = batch.relation[batch.owner].numpy() % relations
    backward = batch.backward[batch.owner].numpy()
    return np.stack([np.where(backward, answer, source), relation, np.where(backward, source, answer)], 1)
