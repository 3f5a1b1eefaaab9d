"""Entities made from their descriptions: statements teach what is on top of frozen vectors, and a structure row beside them.

Everything learnt is among the weights (``text.…``, see models/text/rows.py). What private steps move is one projection, and the
relations: see private/projection.py.
"""

from __future__ import annotations

import hashlib
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from veilgraph.config import TEXT, TrainConfig
from veilgraph.config.settled import Text
from veilgraph.errors import ConfigError, InputError, PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.models import model_class, text
from veilgraph.models.parameters import Parameters
from veilgraph.models.text.encoders.base import PROJECTION as OWN
from veilgraph.models.text.encoders.base import TextEncoder
from veilgraph.models.text.rows import FROZEN, PREFIX, STRUCTURE, Described, read
from veilgraph.models.text.vectors import SentenceFolder, source
from veilgraph.rng import Streams
from veilgraph.train.batches import Batch, LabelBatch, QueryBatch, TripleBatch
from veilgraph.train.gradients import RowGradient
from veilgraph.train.private.clip import ClippedSum, How, Into
from veilgraph.train.private.projection import described_sum
from veilgraph.train.rows.base import Made, Optimisers, Place, Rows

HIDE = 0.3  # share of rows that are their description alone in a step, so that it learns to stand alone
PROJECTION = PREFIX + OWN


class TextRows(Rows):
    """Rows made from descriptions."""

    prefix = PREFIX
    moved = MappingProxyType({"entities": f"weights.{PROJECTION}", "relations": "relations"})

    def __init__(
        self, graph: Graph, public: Graph, config: TrainConfig, settings: Text, width: int, streams: Streams
    ) -> None:
        """Reads confidential data: nothing. Statements that are counted are unrestricted, descriptions that are read are public."""
        encoder = text.encoder(settings.name, settings.vectors)
        features, self.center, self.state = read(encoder, texts_of(graph, config), settings.width)
        known = np.bincount(public.train[:, [0, 2]].ravel(), minlength=len(graph.entities)).astype(np.float32)
        self.described = Described(encoder, features, torch.from_numpy(known), settings.mix)
        self.width, self.hidden, self.streams = width, settings.hidden, streams
        self.candidates = np.flatnonzero(
            ~graph.held_out
        )  # who is held out on purpose is nobody's wrong answer

    def start(self, rng: np.random.Generator, streams: Streams) -> dict[str, Tensor]:
        return self.described.start(
            self.center, self.state, self.width, self.hidden, streams.numpy("init", 1)
        )

    # --- ordinary steps -------------------------------------------------------------------------------------------
    def of(self, p: Parameters, batch: Batch | LabelBatch, place: Place) -> Made:
        assert not isinstance(batch, LabelBatch)
        ids, local = only_its_own(batch, len(p.entities))
        moved = {
            name: tensor
            for name, tensor in p.weights.items()
            if name.startswith(PREFIX) and not name.startswith(FROZEN) and name != STRUCTURE
        }
        with torch.enable_grad():
            leaves = {name: tensor.detach().requires_grad_() for name, tensor in moved.items()}
            weights = {**p.weights, **leaves}
            if STRUCTURE in p.weights:
                own = p.weights[STRUCTURE][ids].requires_grad_()
                rows = self._mixed(ids, weights, own, place)
            else:
                own, rows = None, self.described.rows(ids, weights)
        return Made(
            Parameters(rows.detach(), p.relations, self.own(p.weights)), local, (rows, ids, leaves, own)
        )

    def pull(
        self, p: Parameters, optimisers: Optimisers, made: Made, gradient: RowGradient, rate: float
    ) -> None:
        rows, ids, leaves, own = made.kept
        on_rows = gradient.values
        if gradient.ids is not None:
            on_rows = torch.zeros_like(rows).index_add_(0, gradient.ids, on_rows)
        wanted = [*leaves.values(), *([own] if own is not None else [])]
        found = torch.autograd.grad(rows, wanted, on_rows, allow_unused=True)
        for name, one in zip(leaves, found):
            if one is not None:
                optimisers[f"weights.{name}"].update(p.weights[name], None, one, rate)
        if own is not None and found[-1] is not None:
            optimisers[f"weights.{STRUCTURE}"].update(p.weights[STRUCTURE], ids, found[-1], rate)

    def _mixed(self, ids: Tensor, weights: dict[str, Tensor], own: Tensor, place: Place) -> Tensor:
        """Rows of some entities from their gathered structure; some of them are their description alone."""
        drawing = self.streams.numpy("messages", *place)
        shown = torch.from_numpy((drawing.random(len(ids)) >= HIDE).astype(np.float32)).unsqueeze(1)
        gate = self.described.gate(ids, weights) * shown
        return gate * own + (1 - gate) * self.described.described(ids, weights)

    def flush(self, p: Parameters) -> None:
        p.entities.copy_(self.described.every_row(p.weights))

    # --- private steps --------------------------------------------------------------------------------------------
    def tables(self, p: Parameters) -> Parameters:
        """The projection stands where entity rows usually are."""
        return Parameters(p.weights[PROJECTION], p.relations)

    def clipped(
        self, how: How, p: Parameters, batch: TripleBatch, unit: Tensor | None, into: Into
    ) -> ClippedSum:
        ids, local = only_its_own(batch, len(p.entities))
        assert isinstance(local, TripleBatch)
        gate = self.described.gate(ids, p.weights)
        features = self.described.features.index_select(0, ids)
        features = torch.cat([features, torch.ones(len(ids), 1)], 1) * (1 - gate)
        rows = features @ p.weights[PROJECTION]
        if STRUCTURE in p.weights:
            rows = rows + gate * p.weights[STRUCTURE].index_select(0, ids)
        return described_sum(how, Parameters(rows, p.relations), features, local, unit)

    # --- what is asked of settings --------------------------------------------------------------------------------
    @classmethod
    def facts(cls, graph: Graph, config: TrainConfig) -> dict[str, Any]:
        """Another text, or another source of vectors, makes other rows."""
        read_ = hashlib.sha256("\0".join(texts_of(graph, config)).encode("utf-8", errors="replace"))
        vectors = source(text.encoder(config.text or "", config.text_vectors).vectors).identity
        return {
            "descriptions": read_.hexdigest(),
            "vectors": vectors,
            "held_out": int(graph.held_out.sum()),
        }

    @classmethod
    def refuse(cls, graph: Graph, config: TrainConfig) -> None:
        """Raise for settings that contradict each other or the promise, before anything is written."""
        if config.text is None:
            given = [key for key in TEXT if getattr(config, key)]
            if given:
                raise ConfigError(
                    f"{', '.join(given)} would do nothing without text: name an encoder with --text (veil list encoders)."
                )
            return
        encoder = text.encoder(config.text, config.text_vectors)
        if config.encoder is not None:
            raise ConfigError(
                "encoder makes rows from neighbours, text from descriptions: choose one of them."
            )
        if config.averaging:
            raise ConfigError(
                "averaged rows are not what averaged weights would make of a description: use --averaging 0 with text."
            )
        if config.model == "marginals":
            raise ConfigError(
                "marginals has no vectors that a description could become: choose another --model."
            )
        if graph.descriptions is None:
            raise InputError(
                f"{graph.source or 'the graph'} describes no entity. Load it with --descriptions FILE («entity, text» lines), or from "
                "RDF with rdfs:comment."
            )
        opened = source(encoder.vectors)  # vectors that cannot be read are found before anything is charged
        if encoder.of_sentences and not isinstance(opened, SentenceFolder):
            raise ConfigError(
                f"{encoder.name} reads whole sentences, and {encoder.vectors} has vectors of words: use --text pooled, or another source."
            )
        if config.regime != "none":
            _refuse_what_is_not_public(graph, config)
        if config.private:
            _refuse_what_has_no_bound(encoder, config)


def _refuse_what_is_not_public(graph: Graph, config: TrainConfig) -> None:
    if config.public_descriptions is None:
        raise PrivacyError(
            "descriptions are read as they are, without noise: nothing is promised about them. If they are public, say "
            "--public-descriptions all; if only some are, give how their names begin (disease/,drug/), and the others are not read."
        )
    starts = config.public_names
    if starts is not None and not any(name.startswith(starts) for name in graph.entities):
        raise ConfigError(
            f"public_descriptions is all, or how names begin, with commas; no entity's begins as {config.public_descriptions!r} says."
        )


def _refuse_what_has_no_bound(encoder: TextEncoder, config: TrainConfig) -> None:
    if encoder.layers:
        raise PrivacyError(
            f"{encoder.name} has layers of its own that statements teach, and one statement's part in them has no bound known here. "
            "Use an encoder that is frozen: --text pooled, mean, sentence or autoencoder."
        )
    if not model_class(config.model).separable:
        raise PrivacyError(
            f"{config.model} is no composition and similarity, and one statement's part in a projection has no bound known here "
            "for it. Use complex, distmult, rotate, transe or another that veil list models names."
        )
    if config.text_hidden:
        raise PrivacyError(
            "a hidden layer is not trained privately here: leave --text-hidden out, and the projection is linear."
        )
    if config.mechanism not in (None, "dense"):
        raise PrivacyError(
            f"what is learnt from descriptions has few numbers, all of which every statement moves: mechanism {config.mechanism} saves "
            "nothing here and is not offered. Use --mechanism dense."
        )
    if config.regulariser not in (None, "none"):
        raise PrivacyError(
            "a penalty is not part of what private steps clip where entities are described: use --regulariser none."
        )
    if config.prior == "marginals":
        raise ConfigError("noisy counts know no new entity: with text use --prior none.")


def texts_of(graph: Graph, config: TrainConfig) -> list[str]:
    """What is read about each entity: its description, or its name where it has none or it is not public."""
    found = [None] * len(graph.entities) if graph.descriptions is None else graph.descriptions.to_pylist()
    starts = config.public_names
    if starts is not None:
        found = [text if name.startswith(starts) else None for name, text in zip(graph.entities, found)]
    return [text or plain(name) for name, text in zip(graph.entities, found)]


def plain(name: str) -> str:
    """A name as words. Example: disease/acute_renal_infection becomes «disease acute renal infection»."""
    return " ".join(name.rsplit("#", 1)[-1].replace("/", " ").replace("_", " ").split())


def only_its_own(batch: Batch, entities: int) -> tuple[Tensor, Batch]:
    """The distinct entities of a batch, and the batch with their places instead of their ids; all of them, where all are candidates."""
    if isinstance(batch, QueryBatch):
        return torch.arange(entities), batch
    flat = torch.cat([batch.triples[:, 0], batch.triples[:, 2], batch.negatives.view(-1)])
    ids, place = torch.unique(flat, return_inverse=True)
    b = len(batch.triples)
    triples = torch.stack([place[:b], batch.triples[:, 1], place[b : 2 * b]], 1)
    return ids, TripleBatch(triples, place[2 * b :].view(batch.negatives.shape), batch.weight, batch.keep)
