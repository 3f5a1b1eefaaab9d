"""Audit: does a training keep the ε it claims? Canaries in one training, a lower bound on ε, a verdict."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph import models
from veilgraph.attack.audit.bound import best_guess
from veilgraph.attack.audit.canaries import plant
from veilgraph.attack.audit.scores import canary_scores
from veilgraph.errors import PrivacyError, UsageError
from veilgraph.load import Graph, load
from veilgraph.mark import mark
from veilgraph.rng import Streams
from veilgraph.runs import DELTA, Run
from veilgraph.train import train
from veilgraph.train.loop import Listener
from veilgraph.train.plan import objective_of
from veilgraph.train.state import TrainingState


def audit(
    target: Run | Graph | str | Path,
    *,
    canaries: int = 1000,
    graph: Graph | str | Path | None = None,
    claim: float | None = None,
    listener: Listener | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """epsilon_lower_bound (95 %), epsilon_claimed, verdict (consistent | violated), canaries, and how it was guessed.

    A run is trained again with its own settings, a graph with those given. ``claim`` overrides what the ledger claims,
    to test a claim made elsewhere.

    Reads confidential data: as the training it audits. Releases: nothing; the result is for the curator.
    """
    if canaries < 10:
        raise UsageError(f"an audit needs at least 10 canaries, found {canaries}.")
    if claim is not None and not 0 <= claim < math.inf:
        raise UsageError(f"a claim is an ε, a number from 0 on; found {claim}.")
    if isinstance(target, Run):
        found = target.graph(graph)
        settings = {**{k: v for k, v in target.config.as_dict().items() if v is not None}, **settings}
    else:
        found = load(target)
    if settings.get("epsilon") is None and settings.get("noise_multiplier") is None:
        raise PrivacyError(
            "there is no claim to audit: the training is not private. Give --epsilon, or a private run; for an ordinary "
            "run use veil attack membership."
        )
    if found.marks is None:
        found = found.with_marks(mark(found, everything=True))
    rng = np.random.Generator(np.random.SFC64())  # who is in must not be known from a seed
    planted = plant(found, canaries, rng)
    with tempfile.TemporaryDirectory() as folder:
        run = train(planted.graph, out=Path(folder) / "run", listener=listener, **settings)
        result = _judge(run, planted.graph, planted.statements, planted.included, claim)
    return result


def _judge(
    run: Run, graph: Graph, statements: np.ndarray, included: np.ndarray, claim: float | None
) -> dict[str, Any]:
    config = run.config
    model = models.create(config.model, config.dimension or 1, norm=config.norm)
    model.relation_scale = run.model.relation_scale
    start = TrainingState.fresh(graph, model, config, Streams(config.seed)).parameters
    scores = canary_scores(
        model, start, run.parameters, statements, objective_of(config, len(graph.entities))
    )
    delta = config.delta or DELTA
    best = best_guess(scores, included, delta)
    claimed = claim if claim is not None else run.epsilon
    if claimed is None:  # as published: held against the ε it asked for
        claimed = config.epsilon
    violated = claimed is not None and best.epsilon > claimed
    return {
        "epsilon_lower_bound": best.epsilon,
        "epsilon_claimed": claimed,
        "verdict": "violated" if violated else "consistent",
        "canaries": len(included),
        "included": int(included.sum()),
        "score": best.score,
        "guesses": best.guesses,
        "correct": best.correct,
        "guarantee": run.guarantee,
        "mechanism": config.mechanism,
        "delta": delta,
    }
