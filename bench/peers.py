"""PyKEEN as a peer: the same graph, the same number of reals per entity, PyKEEN's own training loop and evaluator."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from pykeen.losses import InfoNCELoss, NSSALoss
from pykeen.models import ComplEx, DistMult, RotatE, TransE
from pykeen.sampling import BasicNegativeSampler
from pykeen.training import SLCWATrainingLoop
from pykeen.triples import CoreTriplesFactory

from veilgraph import models
from veilgraph.load import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters

MODELS = {"transe": TransE, "distmult": DistMult, "complex": ComplEx, "rotate": RotatE}

RATES = {
    "transe": 1e-3,
    "rotate": 1e-2,
    "distmult": 5e-3,
    "complex": 1e-2,
}  # Adam, by hand; its default 1e-3 is too slow
MARGINS = {
    "transe": 9.0,
    "rotate": 3.0,
}  # its RotatE compares by the Euclidean norm, whose distances are smaller


def factory(graph: Graph, split: str = "train") -> CoreTriplesFactory:
    """PyKEEN's view of a split."""
    return CoreTriplesFactory(
        mapped_triples=torch.from_numpy(graph.splits[split].astype(np.int64)),
        num_entities=len(graph.entities),
        num_relations=len(graph.relations),
    )


def create(name: str, graph: Graph, dimension: int, seed: int = 0) -> tuple[Any, CoreTriplesFactory]:
    """A PyKEEN model with ``dimension`` reals per entity and the loss it is usually trained with."""
    triples = factory(graph)
    width = dimension // 2 if name in ("complex", "rotate") else dimension
    more: dict[str, Any] = {
        "transe": {"scoring_fct_norm": 1, "entity_constrainer": None},
        "distmult": {"entity_constrainer": None, "regularizer": None},
        # its default start (unit normal) drowns the first epochs; this is the start of its other models
        "complex": {"entity_initializer": "xavier_normal", "relation_initializer": "xavier_normal"},
    }.get(name, {})
    model = MODELS[name](
        triples_factory=triples, embedding_dim=width, loss=_loss(name), random_seed=seed, **more
    )
    return model, triples


def _loss(name: str) -> Any:
    """Self-adversarial for distances; sampled softmax for dot products (PyKEEN's default there hardly learns)."""
    if name in MARGINS:
        return NSSALoss(margin=MARGINS[name], adversarial_temperature=1.0)
    return InfoNCELoss(margin=0.0, log_adversarial_temperature=0.0)


class Training:
    """PyKEEN's stochastic local closed-world loop, epoch by epoch, Adam."""

    def __init__(self, name: str, graph: Graph, dimension: int, batch: int, negatives: int) -> None:
        self.model, self.triples = create(name, graph, dimension)
        optimiser = torch.optim.Adam(self.model.get_grad_params(), lr=RATES[name])
        self.loop = SLCWATrainingLoop(
            model=self.model,
            triples_factory=self.triples,
            optimizer=optimiser,
            negative_sampler=BasicNegativeSampler,
            negative_sampler_kwargs={"num_negs_per_pos": negatives},
        )
        self.batch, self.total = batch, 0

    def epochs(self, count: int) -> float:
        """Train; returns the seconds it took."""
        self.total += count
        began = time.perf_counter()
        with torch.enable_grad():
            self.loop.train(
                triples_factory=self.triples,
                num_epochs=self.total,
                continue_training=self.total > count,
                batch_size=self.batch,
                use_tqdm=False,
                use_tqdm_batch=False,
                pin_memory=False,
            )
        return time.perf_counter() - began


def scorer(name: str, dimension: int) -> Model:
    """Our model with PyKEEN's formula: its RotatE compares by the Euclidean norm, not by the sum of moduli."""
    return models.create(name, dimension, norm=2 if name == "rotate" else 1)


def parameters(name: str, model: Any) -> Parameters:
    """PyKEEN's weights as our tables, so that both are ranked by the same code."""
    with torch.no_grad():
        entities = model.entity_representations[0](indices=None)
        relations = model.relation_representations[0](indices=None)
        if name in ("complex", "rotate"):
            entities = torch.cat([entities.real, entities.imag], 1)
            relations = (
                relations.angle() if name == "rotate" else torch.cat([relations.real, relations.imag], 1)
            )
        return Parameters(entities.float().contiguous(), relations.float().contiguous())
