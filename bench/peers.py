"""PyKEEN as a peer: the same graph, the same number of reals per entity, PyKEEN's own training loop and evaluator."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from pykeen.losses import NSSALoss, SoftplusLoss
from pykeen.models import ComplEx, DistMult, RotatE, TransE
from pykeen.sampling import BasicNegativeSampler
from pykeen.training import SLCWATrainingLoop
from pykeen.triples import CoreTriplesFactory

from veilgraph import models
from veilgraph.load import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters

MODELS = {"transe": TransE, "distmult": DistMult, "complex": ComplEx, "rotate": RotatE}


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
    loss = (
        NSSALoss(margin=9.0, adversarial_temperature=1.0) if name in ("transe", "rotate") else SoftplusLoss()
    )
    norm = {"scoring_fct_norm": 1, "entity_constrainer": None} if name == "transe" else {}
    model = MODELS[name](triples_factory=triples, embedding_dim=width, loss=loss, random_seed=seed, **norm)
    return model, triples


class Training:
    """PyKEEN's stochastic local closed-world loop, epoch by epoch, Adam."""

    def __init__(
        self, name: str, graph: Graph, dimension: int, batch: int, negatives: int, rate: float
    ) -> None:
        self.model, self.triples = create(name, graph, dimension)
        optimiser = torch.optim.Adam(self.model.get_grad_params(), lr=rate)
        self.loop = SLCWATrainingLoop(
            model=self.model,
            triples_factory=self.triples,
            optimizer=optimiser,
            negative_sampler=BasicNegativeSampler,
            negative_sampler_kwargs={"num_negs_per_pos": negatives},
        )
        self.batch = batch

    def epochs(self, count: int) -> float:
        """Train; returns the seconds it took."""
        began = time.perf_counter()
        with torch.enable_grad():
            self.loop.train(
                triples_factory=self.triples,
                num_epochs=count,
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
