"""The run folder of a training before its first step: what was asked for is refused or settled, what it will promise is on its ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from veilgraph import machine, models, registry
from veilgraph.account.events import non_private, nothing
from veilgraph.account.ledger import Ledger
from veilgraph.account.promise import ONE_OF_SEVERAL, RESPOND, guarantee_of
from veilgraph.config import PRIVATE_ONLY, TrainConfig
from veilgraph.errors import ConfigError, InputError, PrivacyError, UsageError
from veilgraph.load.graph import Graph
from veilgraph.load.marks import Marks
from veilgraph.load.source import load
from veilgraph.mark.rules import mark
from veilgraph.run.draft import drafted
from veilgraph.run.facts import decided_from
from veilgraph.run.files import check_target
from veilgraph.run.run import Run
from veilgraph.train import tuned
from veilgraph.train.defaults import complete
from veilgraph.train.plan import OrdinaryPlan
from veilgraph.train.private.begin import settle_privately
from veilgraph.train.rows import GraphRows, TextRows
from veilgraph.train.session import kind_of, visible
from veilgraph.train.tasks.links import refuse

Explain = Callable[[str], None]


def begin(
    graph: Graph | str | Path,
    marks: Marks | None = None,
    *,
    out: str | Path,
    explain: Explain | None = None,
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
    config = config.with_values(threads=machine.prepare(config.threads))
    refuse_settings(graph, config, in_rounds=in_rounds)
    if config.private and graph.marks is None:
        graph = graph.with_marks(mark(graph, everything=True))
    tuned.refuse(config, graph)
    public = visible(graph, config)
    if not config.private and not len(public.train):
        raise InputError(
            "every training statement is confidential: nothing is left to learn from without them."
        )
    with drafted(out, closed=one_of_several or not _promises(config)) as draft:
        settled, facts, line = _settled(graph, public, config, draft.ledger)
        refuse(models.scorer_of(settled), settled)
        if in_rounds:  # which may be over before all steps are taken
            facts["in_rounds"] = True
        if one_of_several:
            facts["one_of_several"] = True
            draft.ledger.charge(non_private(ONE_OF_SEVERAL), "trial")
        run = draft.keep(graph, settled, facts)
    # Not before the folder is in its place: what was shown must not be forgotten, or drawn again.
    if explain is not None:
        explain(line)
    return run


def _promises(config: TrainConfig) -> bool:
    """Whether what is trained may be shown to others."""
    sound = guarantee_of(config.mechanism or "lazy") == "dp"
    secret = config.insecure_noise_seed is None  # (noise that can be made again hides nothing)
    return config.drop_confidential or (config.private and sound and secret)


def refuse_settings(graph: Graph, config: TrainConfig, *, in_rounds: bool) -> None:
    """Raise for what cannot be done, contradicts itself or would do nothing, before anything is written or charged."""
    if not len(graph.train) and not config.private:  # (in a private training that would be telling)
        raise InputError(f"{graph.source or 'the graph'} has no training statement.")
    models.model_class(config.model)
    if config.drop_confidential and graph.marks is None:
        raise PrivacyError(
            "nothing is marked as confidential, so nothing would be dropped and every statement would be read. "
            "Say what is confidential first: veil mark GRAPH --relation …"
        )
    if config.drop_confidential and config.private:
        raise UsageError(
            "drop_confidential never reads confidential statements, epsilon learns from them with noise: choose one."
        )
    if config.mechanism == RESPOND and in_rounds:
        raise UsageError(
            "mechanism respond answers once, before any round, and clients' answers are not joined yet: federate with another "
            "mechanism, or let every institution make its graph public with veil release."
        )
    if config.prior == "public" and config.mechanism != RESPOND:
        raise UsageError(
            "prior public goes with mechanism respond; without a promise say prior marginals, or none."
        )
    for rows in (GraphRows, TextRows):
        rows.refuse(graph, config)
    if config.text is not None and in_rounds:
        raise ConfigError(
            "rows made from descriptions are not shared in a federation: each client's projection makes its own, and a server could "
            "tell entities by their (public) texts. Leave --text out."
        )
    promised = [name for name in PRIVATE_ONLY if getattr(config, name) not in (None, False)]
    if promised and not config.private:
        raise PrivacyError(
            f"{', '.join(promised)} would do nothing: without epsilon the training is an ordinary one, which protects "
            "nobody. Give --epsilon, or leave the setting out."
        )


def _settled(
    graph: Graph, public: Graph, config: TrainConfig, ledger: Ledger
) -> tuple[TrainConfig, dict[str, Any], str]:
    """Every setting, what the run remembers, and the line that says what was chosen; what is spent on the way is charged."""
    facts: dict[str, Any] = {"statements": len(public.train)}
    if config.private:
        settled, count, line = settle_privately(graph, public, config, ledger)
        facts["units"] = round(count, 1)
    else:
        settled, line = complete(config, public, models.model_class(config.model))
        dropped = config.regime == "dropped"
        said = "unrestricted statements only" if dropped else "ordinary training"
        ledger.charge(nothing() if dropped else OrdinaryPlan.event, said)
    facts |= kind_of(settled).facts(graph, settled)
    more = [*tuned.said(settled), *_of_others(graph, settled)]
    if more:
        facts["decided_from"] = [*decided_from(graph), *more]
    return settled, facts, line


def _of_others(graph: Graph, config: TrainConfig) -> list[str]:
    """Parts of a promise that are code of other packages, which nobody argued for here."""
    unit = graph.marks.unit.partition(":")[0] if graph.marks is not None else "statement"
    asked = {
        "mechanisms": config.mechanism if config.private and config.mechanism != RESPOND else None,
        "units": unit,
        "models": config.model,
    }
    whose = {(kind, name): registry.foreign(kind, name) for kind, name in asked.items() if name is not None}
    return [
        f"{registry.KINDS[kind].word} {name}, whose code is {module}"
        for (kind, name), module in whose.items()
        if module
    ]


def complete_config(graph: Graph, settings: TrainConfig | dict[str, Any]) -> tuple[TrainConfig, str]:
    """Every open setting of an ordinary training derived from the graph, and the line that says what was chosen."""
    config = settings if isinstance(settings, TrainConfig) else TrainConfig.of(settings)
    config = config.with_values(threads=machine.prepare(config.threads))
    return complete(config, graph, models.model_class(config.model))
