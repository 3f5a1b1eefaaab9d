"""``train(graph, marks, model="complex", epsilon=1, out="run/")`` and ``resume("run/")``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilgraph.errors import RunError
from veilgraph.files import read_tensors
from veilgraph.layout import CERTIFICATE, CHECKPOINT, CONFIG, CURATOR, VOCABULARY
from veilgraph.load.graph import Graph
from veilgraph.load.marks import Marks
from veilgraph.run.facts import require_names, unbound
from veilgraph.run.run import Run
from veilgraph.run.vectors import write_vectors
from veilgraph.run.verify import certify
from veilgraph.train.begin import Explain, begin
from veilgraph.train.loop import CHECKPOINT_SECONDS, Listener
from veilgraph.train.session import kind_of, run_training


def train(
    graph: Graph | str | Path,
    marks: Marks | None = None,
    *,
    out: str | Path,
    listener: Listener | None = None,
    explain: Explain | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    one_of_several: bool = False,
    **settings: Any,
) -> Run:
    """Train on a graph and write a run folder; settings are the fields of TrainConfig.

    With ``epsilon`` (or ``noise_multiplier``) training is private: confidential are the statements that ``marks``, or
    the graph's own marks, say — all of them, if nothing was ever marked. ``explain`` is told in one line what was chosen.
    A training that is ``one_of_several``, to be chosen from, promises nothing by itself, and its ledger says so from the start.

    Reads confidential data: every training statement; with ``drop_confidential`` none. Releases: the vectors; with
    ``epsilon`` under the guarantee in the run's certificate, otherwise without any.
    """
    begun = begin(graph, marks, out=out, explain=explain, one_of_several=one_of_several, **settings)
    with begun.locked():  # (as soon as the folder is there, another process may have gone on with it)
        run = replace(Run.open(begun.folder), held=begun.held)
        _refuse_to_go_on(run)
        return _finish(run, run.graph(), listener, checkpoint_seconds)


def resume(
    folder: str | Path,
    *,
    graph: Graph | str | Path | None = None,
    moved: bool = False,
    listener: Listener | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Run:
    """Continue a run that was stopped. An ordinary run ends as if it had not been; a private one continues its ledger,
    with fresh noise, and what was paid for steps that are lost stays paid. A folder that was copied does not go on, unless ``moved``
    says that no other copy will.

    Reads confidential data and releases: as ``train``.
    """
    with Run.open(folder).locked():
        run = Run.open(folder)  # as it is now: whoever held it until now may have finished it
        certified = (run.folder / CERTIFICATE).is_file()
        if run.finished and not certified:  # stopped between its vectors and its certificate
            certify(run, run.graph(graph))
            return run
        _refuse_to_go_on(run)
        found = run.graph(graph)
        run.require_in_place(moved=moved)
        return _finish(run, found, listener, checkpoint_seconds)


def _refuse_to_go_on(run: Run) -> None:
    """Raise where there is nothing to go on with, or what would go on is not what was begun. Under the run's lock."""
    if run.finished:
        raise RunError(f"{run.folder} is finished already: there is nothing to resume.")
    if (run.folder / CERTIFICATE).is_file():
        raise RunError(
            f"{run.folder} was finished and certified, and its vectors are gone: what was released cannot be made again for what was paid. "
            "Put the files back from a copy, or train anew."
        )
    changed = unbound(run.ledger, run.config, run.facts, file=run.folder / CONFIG)
    if changed:
        raise RunError(
            f"{'; '.join(changed)}: what was paid for is no longer what would be done or promised. Undo the change, or train anew."
        )
    if run.config.regime != "none" and not (run.folder / CURATOR).is_file():
        raise RunError(
            f"{run.folder} has no {CURATOR}: whether a graph is the right one cannot be told without it."
        )
    require_names(run.ledger, run.folder / VOCABULARY)


def _finish(run: Run, graph: Graph, listener: Listener | None, seconds: float) -> Run:
    """Train to the end and certify. Under the run's lock."""
    read = kind_of(run.config).facts(graph, run.config)
    if any(run.facts.get(key) != value for key, value in read.items() if key != "held_out"):
        raise RunError(
            f"{run.folder} was begun with other descriptions, or other vectors of them: what was learnt would not fit."
        )
    run.forget_after(_checkpoint_epoch(run))
    state, model = run_training(
        graph,
        run.config,
        run.folder,
        units=float(run.facts.get("units", 0)),
        listener=listener,
        checkpoint_seconds=seconds,
    )
    write_vectors(run, state.result, model)
    certify(run, graph)
    return replace(Run.open(run.folder), held=graph)


def _checkpoint_epoch(run: Run) -> int:
    if not (run.folder / CHECKPOINT).exists():
        return 0
    try:
        return int(json.loads(read_tensors(run.folder / CHECKPOINT)[1]["state"])["epoch"])
    except (RunError, OSError, KeyError, ValueError) as error:
        raise RunError(
            f"{run.folder / CHECKPOINT} cannot be read ({error}). Delete it to start again."
        ) from None
