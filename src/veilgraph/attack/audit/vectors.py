"""An audit of what is published: canaries in one training, told apart by the vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from veilgraph import models
from veilgraph.attack.audit.bound import best_guess, power
from veilgraph.attack.audit.canaries import Canaries, plant
from veilgraph.attack.audit.scores import canary_scores
from veilgraph.config import settle
from veilgraph.load import Graph
from veilgraph.mark import unrestricted
from veilgraph.rng import Streams
from veilgraph.run.run import Run
from veilgraph.train import train
from veilgraph.train.loop import Listener
from veilgraph.train.state import TrainingState
from veilgraph.train.tasks.links import objective_of

HARDLY = 50.0  # ε
PASSES = 20  # over unrestricted statements: they are public, no promise is about them, and more of them hide no canary


def audit_vectors(
    graph: Graph,
    settings: dict[str, Any],
    canaries: int,
    claim: float | None,
    folder: Path,
    listener: Listener | None,
) -> dict[str, Any]:
    """Train with canaries, each in by a fair coin, and guess which; and once more at an ε that promises hardly anything.

    What is found there is what these canaries could have shown in such a training, whatever was wrong: their power. (Never more than what
    could be refuted if every guess were right.)
    """
    planted = plant(
        graph, canaries, np.random.Generator(np.random.SFC64())
    )  # who is in must not be known from a seed
    if len(unrestricted(graph).train):
        settings = {**settings, "epochs": min(int(settings.get("epochs") or PASSES), PASSES)}
    run = train(planted.graph, out=folder / "run", listener=listener, **settings)
    found = _judge(run, planted, claim)
    hardly = {k: v for k, v in settings.items() if k not in ("noise_multiplier", "prior_noise")}
    loud = train(planted.graph, out=folder / "control", listener=listener, **{**hardly, "epsilon": HARDLY})
    return {**found, "power": min(found["power"], _judge(loud, planted, claim)["epsilon_lower_bound"])}


def _judge(run: Run, planted: Canaries, claim: float | None) -> dict[str, Any]:
    config, graph, included = run.config, planted.graph, planted.included
    model = models.scorer_of(config)
    model.relation_scale = run.model.relation_scale
    start = TrainingState.fresh(graph, model, settle(config), Streams(config.seed)).parameters
    scores = canary_scores(
        model, start, run.parameters, planted.statements, objective_of(settle(config), len(graph.entities))
    )
    delta = run.delta
    best = best_guess(scores, included, delta)
    claimed = claim if claim is not None else run.epsilon
    if claimed is None:  # as published: held against the ε it asked for
        claimed = config.epsilon
    return {
        "epsilon_lower_bound": best.epsilon,
        "epsilon_claimed": claimed,
        "power": power(len(included), len(scores), delta),
        "mechanism_level": "vectors",
        "canaries": len(included),
        "included": int(included.sum()),
        "score": best.score,
        "guesses": best.guesses,
        "correct": best.correct,
        "guarantee": run.guarantee,
        "mechanism": config.mechanism,
        "delta": delta,
    }
