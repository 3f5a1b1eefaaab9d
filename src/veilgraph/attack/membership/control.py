"""The yardstick beside a membership attack: the same attack on a model that never read a confidential statement.

It cannot know who is a member, so its AUC is ½ but for chance. Where it is not, the pool is to blame, and so is whatever the attack found.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veilgraph import models
from veilgraph.config import TrainConfig, settle
from veilgraph.config.asked import PRIVACY
from veilgraph.load import Graph
from veilgraph.mark import mark, unrestricted
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rng import Streams
from veilgraph.run.run import Run
from veilgraph.train import train
from veilgraph.train.loop import Listener
from veilgraph.train.state import TrainingState

Seen = tuple[
    Model, Parameters, bool
]  # what an attacker is given, and whether it asks backwards by a second row


def control(run: Run, graph: Graph, folder: Path, listener: Listener | None = None) -> Seen:
    """The run's model, trained with its settings on unrestricted statements alone; untrained, where there are none.

    Reads confidential data: none. Releases: nothing; for the curator.
    """
    graph = graph if graph.marks is not None else graph.with_marks(mark(graph, everything=True))
    settings = ordinary(run.config)
    if not len(unrestricted(graph).train):
        config = TrainConfig.of(settings)
        model = models.scorer_of(config)
        model.prepare(graph.train[:0], len(graph.relations))
        return (
            model,
            TrainingState.fresh(graph, model, settle(config), Streams(config.seed)).parameters,
            bool(config.reciprocal),
        )
    found = train(graph, out=folder / "control", listener=listener, drop_confidential=True, **settings)
    return found.model, found.parameters, bool(found.config.reciprocal)


def ordinary(config: TrainConfig) -> dict[str, Any]:
    """What a configuration says beside its promise; labels, which may be confidential too, teach no control."""
    left_out = (*PRIVACY, "tuned_on", "task")
    return {k: v for k, v in config.as_dict().items() if v is not None and k not in left_out}
