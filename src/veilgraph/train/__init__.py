"""From a graph to a run: ``train(graph, marks, model="complex", epsilon=1, out="run/")`` and ``resume("run/")``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilgraph import machine, models
from veilgraph.account.events import non_private, nothing
from veilgraph.account.ledger import Ledger
from veilgraph.certify import certify
from veilgraph.config import ENCODER, PRIVATE_ONLY, TEXT, TrainConfig
from veilgraph.errors import ConfigError, InputError, PrivacyError, RunError, UsageError
from veilgraph.files import read_tensors
from veilgraph.load import Graph, load
from veilgraph.load.marks import Marks
from veilgraph.mark import mark
from veilgraph.run_facts import decided_from, unbound
from veilgraph.run_files import CERTIFICATE, CURATOR, check_target
from veilgraph.runs import Run
from veilgraph.train import tuned
from veilgraph.train.defaults import complete
from veilgraph.train.loop import CHECKPOINT_SECONDS, Listener
from veilgraph.train.plan import OrdinaryPlan, refuse
from veilgraph.train.session import regime, run_training, visible
from veilgraph.train.state import CHECKPOINT

__all__ = ["begin", "complete_config", "resume", "train"]


def complete_config(graph: Graph, settings: TrainConfig | dict[str, Any]) -> tuple[TrainConfig, str]:
    """Every open setting of an ordinary training derived from the graph, and the line that says what was chosen."""
    config = settings if isinstance(settings, TrainConfig) else TrainConfig.of(settings)
    config = config.with_values(threads=machine.prepare(config.threads))
    return complete(config, graph, models.model_class(config.model))


def train(
    graph: Graph | str | Path,
    marks: Marks | None = None,
    *,
    out: str | Path,
    listener: Listener | None = None,
    explain: Any = None,
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
    run = begin(graph, marks, out=out, explain=explain, one_of_several=one_of_several, **settings)
    return _finish(run, run.graph(), listener, checkpoint_seconds)


def begin(
    graph: Graph | str | Path,
    marks: Marks | None = None,
    *,
    out: str | Path,
    explain: Any = None,
    one_of_several: bool = False,
    in_rounds: bool = False,
    **settings: Any,
) -> Run:
    """The run folder of a training before its first step: every setting chosen, what it will promise on the ledger.

    Reads confidential data: how many units there are, in a private training. Releases: that number with noise, charged.
    """
    graph = load(graph)
    graph = graph if marks is None else graph.with_marks(marks)
    check_target(Path(out))
    config = TrainConfig.of(settings)
    if not len(graph.train) and not config.private:  # (in a private training that would be telling)
        raise InputError(f"{graph.source or 'the graph'} has no training statement.")
    config = config.with_values(threads=machine.prepare(config.threads))
    scorer = models.model_class(config.model)
    if config.drop_confidential and graph.marks is None:
        raise PrivacyError(
            "nothing is marked as confidential, so nothing would be dropped and every statement would be read. "
            "Say what is confidential first: veil mark GRAPH --relation …"
        )
    if config.drop_confidential and config.private:
        raise UsageError(
            "drop_confidential never reads confidential statements, epsilon learns from them with noise: choose one."
        )
    if config.encoder is not None and config.private:
        raise PrivacyError(
            "an encoder sends messages along every statement, and no private version of it is sound here: leave --encoder or --epsilon "
            "out. Labels can be learnt with a guarantee: veil classify --guarantee."
        )
    if any(getattr(config, key) is not None for key in ENCODER):
        from veilgraph.train.encoder import refuse as refuse_encoder

        refuse_encoder(graph, config)
    if any(getattr(config, key) is not None for key in TEXT):
        from veilgraph.train.text import refuse as refuse_text

        refuse_text(graph, config)
        if config.text is not None and in_rounds:
            raise ConfigError(
                "rows made from descriptions are not shared in a federation: each client's projection makes its own, and a server could "
                "tell entities by their (public) texts. Leave --text out."
            )
    if config.task == "labels" and config.drop_confidential:
        raise PrivacyError(
            "task labels reads labels as they are, and drop_confidential promises: use veil classify."
        )
    promised = [name for name in PRIVATE_ONLY if getattr(config, name) not in (None, False)]
    if promised and not config.private:
        raise PrivacyError(
            f"{', '.join(promised)} would do nothing: without epsilon the training is an ordinary one, which protects "
            "nobody. Give --epsilon, or leave the setting out."
        )
    if config.private and graph.marks is None:
        graph = graph.with_marks(mark(graph, everything=True))
    tuned.refuse(config, graph)
    public = visible(graph, config)
    if not config.private and not len(public.train):
        raise InputError(
            "every training statement is confidential: nothing is left to learn from without them."
        )

    def settle(ledger: Ledger) -> tuple[TrainConfig, dict[str, Any]]:
        if config.private:
            from veilgraph.train.private.setup import settle as settle_privately

            settled, count, line = settle_privately(graph, public, config, ledger)
            facts: dict[str, Any] = {"statements": len(public.train), "units": round(count, 1)}
        else:
            settled, line = complete(config, public, scorer)
            facts = {"statements": len(public.train)}
            dropped = regime(config) == "dropped"
            event = nothing() if dropped else OrdinaryPlan.event
            ledger.charge(event, "unrestricted statements only" if dropped else "ordinary training")
        refuse(models.create(settled.model, settled.dimension or 1, norm=settled.norm), settled)
        if explain is not None:
            explain(line)
        if settled.text is not None:
            from veilgraph.train.text import digest

            facts |= {**digest(graph, settled), "held_out": int(graph.held_out.sum())}
        if tuned.said(settled):
            facts["decided_from"] = [*decided_from(graph), *tuned.said(settled)]
        if in_rounds:  # which may be over before all steps are taken
            facts["in_rounds"] = True
        if one_of_several:
            ledger.charge(non_private("one of several trainings, not to be shown"), "trial")
        return settled, facts

    run = Run.create(out, graph, settle, open_data=regime(config) == "none")
    return replace(run, held=graph)


def resume(
    folder: str | Path,
    *,
    graph: Graph | str | Path | None = None,
    listener: Listener | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Run:
    """Continue a run that was stopped. An ordinary run ends as if it had not been; a private one continues its ledger,
    with fresh noise, and what was paid for steps that are lost stays paid.

    Reads confidential data and releases: as ``train``.
    """
    run = Run.open(folder)
    if run.finished and (run.folder / CERTIFICATE).is_file():
        raise RunError(f"{folder} is finished already: there is nothing to resume.")
    if run.finished:  # stopped between its vectors and its certificate
        certify(run, run.graph(graph))
        return run
    changed = unbound(run.ledger, run.config, run.facts)
    if changed:
        raise RunError(
            f"{'; '.join(changed)}: what was paid for is no longer what would be done or promised. Undo the change, or train anew."
        )
    if regime(run.config) != "none" and not (run.folder / CURATOR).is_file():
        raise RunError(
            f"{run.folder} has no {CURATOR}: whether a graph is the right one cannot be told without it."
        )
    return _finish(run, run.graph(graph), listener, checkpoint_seconds)


def _finish(run: Run, graph: Graph, listener: Listener | None, seconds: float) -> Run:
    if run.config.text is not None:
        from veilgraph.train.text import digest

        if digest(graph, run.config) != {key: run.facts.get(key) for key in ("descriptions", "vectors")}:
            raise RunError(
                f"{run.folder} was begun with other descriptions, or other vectors of them: what was learnt would not fit."
            )
    with run.locked():
        run.forget_after(_checkpoint_epoch(run))
        state, model = run_training(
            graph,
            run.config,
            run.folder,
            units=float(run.facts.get("units", 0)),
            listener=listener,
            checkpoint_seconds=seconds,
        )
        run.write_vectors(state, model)
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
