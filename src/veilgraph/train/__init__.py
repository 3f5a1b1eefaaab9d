"""From a graph to a run: ``train(graph, model="complex", out="run/")`` and ``resume("run/")``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from veilgraph import machine, models
from veilgraph.config import TrainConfig
from veilgraph.errors import InputError, RunError
from veilgraph.load import Graph, load
from veilgraph.runs import Run, check_target
from veilgraph.train.defaults import complete
from veilgraph.train.loop import CHECKPOINT_SECONDS, Listener, run_epochs
from veilgraph.train.plan import OrdinaryPlan, refuse
from veilgraph.train.state import CHECKPOINT

__all__ = ["complete_config", "resume", "train"]


def complete_config(graph: Graph, settings: TrainConfig | dict[str, Any]) -> tuple[TrainConfig, str]:
    """Every open setting derived from the graph, and the line that says what was chosen."""
    config = settings if isinstance(settings, TrainConfig) else TrainConfig.of(settings)
    config = config.with_values(threads=machine.prepare(config.threads))
    return complete(config, graph, models.model_class(config.model))


def train(
    graph: Graph | str | Path,
    *,
    out: str | Path,
    listener: Listener | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    **settings: Any,
) -> Run:
    """Train on a graph and write a run folder; settings are the fields of TrainConfig.

    Reads confidential data: every training statement. Releases: the vectors, without any privacy guarantee.
    """
    graph = load(graph)
    check_target(Path(out))
    if not len(graph.train):
        raise InputError(f"{graph.source or 'the graph'} has no training statement.")
    config, _ = complete_config(graph, settings)
    model = models.create(config.model, config.dimension or 1, norm=config.norm)
    refuse(model, config)
    run = Run.create(out, graph, config, dict(OrdinaryPlan.event))
    return _finish(run, graph, model, listener, checkpoint_seconds)


def resume(
    folder: str | Path,
    *,
    graph: Graph | str | Path | None = None,
    listener: Listener | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Run:
    """Continue a run that was stopped; the result is the same as if it had not been.

    Reads confidential data and releases: as ``train``.
    """
    run = Run.open(folder)
    if run.finished:
        raise RunError(f"{folder} is finished already: there is nothing to resume.")
    model = models.create(run.config.model, run.config.dimension or 1, norm=run.config.norm)
    return _finish(run, run.graph(graph), model, listener, checkpoint_seconds)


def _finish(run: Run, graph: Graph, model: models.Model, listener: Listener | None, seconds: float) -> Run:
    with run.locked():
        run.forget_after(_checkpoint_epoch(run))
        state, _ = run_epochs(
            graph, model, run.config, run.folder, listener=listener, checkpoint_seconds=seconds
        )
        run.write_vectors(state, model)
    return replace(Run.open(run.folder), held=graph)


def _checkpoint_epoch(run: Run) -> int:
    import json

    from safetensors import SafetensorError

    from veilgraph.files import read_tensors

    if not (run.folder / CHECKPOINT).exists():
        return 0
    try:
        return int(json.loads(read_tensors(run.folder / CHECKPOINT)[1]["state"])["epoch"])
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise RunError(
            f"{run.folder / CHECKPOINT} cannot be read ({error}). Delete it to start again."
        ) from None
