"""The plainest private answer: noisy counts as they are released, nothing learnt and nothing denoised."""

from __future__ import annotations

import math

import numpy as np
import torch

from veilgraph import models
from veilgraph.account.calibrate import calibrate
from veilgraph.account.events import gaussian
from veilgraph.load import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.models.prior import Prior
from veilgraph.noise.gauss import source


def raw_counts(
    graph: Graph, statements: np.ndarray, epsilon: float, delta: float
) -> tuple[Model, Parameters]:
    """How often each entity is a tail, and a head, of each relation in these statements, with the noise of one release.

    Reads confidential data: the statements. Releases: the counts, (ε, δ) for one statement.
    """
    relations, entities = len(graph.relations), len(graph.entities)
    table = np.zeros((2 * relations, entities))
    head, relation, tail = statements.astype(np.int64).T
    np.add.at(table, (relation, tail), 1)
    np.add.at(table, (relations + relation, head), 1)
    multiplier = calibrate(lambda noise: [gaussian(noise)], epsilon, delta)
    table += multiplier * math.sqrt(2) * source().normal(*table.shape)
    model = models.create("marginals", 1)
    p = Parameters(*model.initialise(entities, relations, np.random.default_rng(0)))
    p.prior = Prior(relations, entities, torch.from_numpy(table).float())
    return model, p
