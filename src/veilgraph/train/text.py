"""Entities made from their descriptions: statements teach what is on top of frozen vectors, and a structure row beside them.

Everything learnt is among the parameters' weights (``text.…``, see models/text/rows.py), so checkpoints, resuming and the run folder are
those of any training; ``p.entities`` holds the rows that are made from them, brought up to date by ``flush``.
"""

from __future__ import annotations

import hashlib
import time

import numpy as np
import torch
from torch import Tensor

from veilgraph.config import TrainConfig
from veilgraph.errors import ConfigError, InputError, PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.models import model_class, text
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.models.text.rows import FROZEN, PREFIX, STRUCTURE, Described, read
from veilgraph.models.text.vectors import SentenceFolder, source
from veilgraph.rng import Streams
from veilgraph.train import negatives
from veilgraph.train.gradients import QueryBatch, TripleBatch
from veilgraph.train.optim import Optimiser
from veilgraph.train.plan import Batch, OrdinaryPlan

HIDE = 0.3  # share of rows that are their description alone in a step, so that it learns to stand alone


def texts_of(graph: Graph, config: TrainConfig) -> list[str]:
    """What is read about each entity: its description, or its name where it has none or it is not public."""
    found = [None] * len(graph.entities) if graph.descriptions is None else graph.descriptions.to_pylist()
    starts = public_names(config)
    if starts is not None:
        found = [text if name.startswith(starts) else None for name, text in zip(graph.entities, found)]
    return [text or plain(name) for name, text in zip(graph.entities, found)]


def public_names(config: TrainConfig) -> tuple[str, ...] | None:
    """How the names of entities begin whose descriptions may be read; None: all may. Where nothing is promised, all are."""
    if not promises(config) or (config.public_descriptions or "").strip().lower() == "all":
        return None
    return tuple(part.strip() for part in (config.public_descriptions or "").split(",") if part.strip())


def promises(config: TrainConfig) -> bool:
    """Whether something is promised about the graph: with noise, or by not reading what is confidential."""
    return config.private or config.drop_confidential


def digest(graph: Graph, config: TrainConfig) -> dict[str, str]:
    """What a run remembers of the texts it read and of where their vectors came from: another one makes other rows."""
    read = hashlib.sha256("\0".join(texts_of(graph, config)).encode("utf-8", errors="replace")).hexdigest()
    return {
        "descriptions": read,
        "vectors": source(text.encoder(config.text or "", config.text_vectors).vectors).identity,
    }


def plain(name: str) -> str:
    """A name as words. Example: disease/acute_renal_infection becomes «disease acute renal infection»."""
    return " ".join(name.rsplit("#", 1)[-1].replace("/", " ").replace("_", " ").split())


def described(
    graph: Graph, public: Graph, config: TrainConfig, width: int, rng: np.random.Generator
) -> tuple[Described, dict[str, Tensor]]:
    """How entity rows are made, and the weights they are made with before the first step.

    Reads confidential data: nothing; of statements only unrestricted ones are counted, and descriptions are those that are public.
    """
    encoder = text.encoder(config.text or "", config.text_vectors)
    features, center, state = read(encoder, texts_of(graph, config), config.text_width)
    known = np.bincount(public.train[:, [0, 2]].ravel(), minlength=len(graph.entities)).astype(np.float32)
    found = Described(encoder, features, torch.from_numpy(known), config.text_mix or "text")
    return found, found.start(center, state, width, config.text_hidden or 0, rng)


def refuse(graph: Graph, config: TrainConfig) -> None:
    """Raise for settings that contradict each other or the promise, before anything is written."""
    if config.text is None:
        given = [
            key
            for key in ("text_vectors", "text_mix", "text_hidden", "text_width", "public_descriptions")
            if getattr(config, key)
        ]
        if given:
            raise ConfigError(
                f"{', '.join(given)} would do nothing without text: name an encoder with --text (veil list encoders)."
            )
        return
    encoder = text.encoder(config.text, config.text_vectors)
    if config.encoder is not None:
        raise ConfigError("encoder makes rows from neighbours, text from descriptions: choose one of them.")
    if config.averaging:
        raise ConfigError(
            "averaged rows are not what averaged weights would make of a description: use --averaging 0 with text."
        )
    if config.model == "marginals":
        raise ConfigError("marginals has no vectors that a description could become: choose another --model.")
    if graph.descriptions is None:
        raise InputError(
            f"{graph.source or 'the graph'} describes no entity. Load it with --descriptions FILE («entity, text» lines), or from RDF with "
            "rdfs:comment."
        )
    opened = source(encoder.vectors)  # before anything is charged: vectors that cannot be read are found here
    if encoder.of_sentences and not isinstance(opened, SentenceFolder):
        raise ConfigError(
            f"{encoder.name} reads whole sentences, and {encoder.vectors} has vectors of words: use --text pooled, or another source."
        )
    if not promises(config):
        return
    if config.public_descriptions is None:
        raise PrivacyError(
            "descriptions are read as they are, without noise: nothing is promised about them. If they are public, say "
            "--public-descriptions all; if only some are, give how their names begin (disease/,drug/), and the others are not read."
        )
    starts = public_names(config)
    if starts is not None and not any(name.startswith(starts) for name in graph.entities):
        raise ConfigError(
            f"public_descriptions is all, or how names begin, with commas; no entity's begins as {config.public_descriptions!r} says."
        )
    if not config.private:
        return
    if encoder.layers:
        raise PrivacyError(
            f"{encoder.name} has layers of its own that statements teach, and one statement's part in them has no bound known here. "
            "Use an encoder that is frozen: --text pooled, mean, sentence or autoencoder."
        )
    if not model_class(config.model).separable:
        raise PrivacyError(
            f"{config.model} is no composition and similarity, and one statement's part in a projection has no bound known here for it. "
            "Use complex, distmult, rotate, transe or another that veil list models names."
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


class TextPlan(OrdinaryPlan):
    """Statements asked about as ever, of rows that are made from descriptions."""

    def __init__(
        self, graph: Graph, model: Model, config: TrainConfig, streams: Streams, described: Described
    ) -> None:
        super().__init__(graph, model, config, streams)
        self.described = described
        self.candidates = np.flatnonzero(
            ~graph.held_out
        )  # entities held out on purpose are nobody's wrong answer

    def _negatives(self, drawing: np.random.Generator, sides: int) -> np.ndarray:
        found = negatives.draw(
            drawing, sides, min(self.config.negatives or 1, len(self.candidates)), len(self.candidates)
        )
        return self.candidates[found]

    def step(self, p: Parameters, optimisers: dict[str, Optimiser], batch: Batch, rate: float) -> float:
        """Move relations and what rows are made with; returns the mean loss."""
        began = time.perf_counter()
        ids, batch = _only_its_own(batch, len(p.entities))
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
                rows = self._mixed(ids, weights, own)
            else:
                own, rows = None, self.described.rows(ids, weights)
        found = self.gradients(Parameters(rows.detach(), p.relations, p.weights), batch)
        optimisers["relations"].update(p.relations, found.relations.ids, found.relations.values, rate)
        on_rows = found.entities.values
        if found.entities.ids is not None:
            on_rows = torch.zeros_like(rows).index_add_(0, found.entities.ids, on_rows)
        wanted = [*leaves.values(), *([own] if own is not None else [])]
        gradients = torch.autograd.grad(rows, wanted, on_rows, allow_unused=True)
        computed = time.perf_counter()
        for name, gradient in zip(leaves, gradients):
            if gradient is not None:
                optimisers[f"weights.{name}"].update(p.weights[name], None, gradient, rate)
        if own is not None and gradients[-1] is not None:
            optimisers[f"weights.{STRUCTURE}"].update(p.weights[STRUCTURE], ids, gradients[-1], rate)
        self.seconds["gradient"] += computed - began
        self.seconds["update"] += time.perf_counter() - computed
        return found.loss

    def _mixed(self, ids: Tensor, weights: dict[str, Tensor], own: Tensor) -> Tensor:
        """Rows of some entities from their gathered structure; some of them are their description alone."""
        drawing = self.streams.numpy("messages", self.epoch, self.count)
        shown = torch.from_numpy((drawing.random(len(ids)) >= HIDE).astype(np.float32)).unsqueeze(1)
        gate = self.described.gate(ids, weights) * shown
        return gate * own + (1 - gate) * self.described.described(ids, weights)

    def flush(self, p: Parameters) -> None:
        """Entity rows as everything learnt makes them."""
        p.entities.copy_(self.described.every_row(p.weights))


def _only_its_own(batch: Batch, entities: int) -> tuple[Tensor, Batch]:
    """The distinct entities of a batch, and the batch with their places instead of their ids; all of them, where all are candidates."""
    if isinstance(batch, QueryBatch):
        return torch.arange(entities), batch
    flat = torch.cat([batch.triples[:, 0], batch.triples[:, 2], batch.negatives.view(-1)])
    ids, place = torch.unique(flat, return_inverse=True)
    b = len(batch.triples)
    triples = torch.stack([place[:b], batch.triples[:, 1], place[b : 2 * b]], 1)
    return ids, TripleBatch(triples, place[2 * b :].view(batch.negatives.shape), batch.weight, batch.keep)
