"""What a report is about: runs on one graph, measured, attacked and audited. Nothing is written here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilgraph.account.statement import rounded_up
from veilgraph.attack import audit
from veilgraph.attack.membership.decide import USUAL, membership
from veilgraph.errors import InputError, UsageError
from veilgraph.layout import ATTACKS, METRICS
from veilgraph.load import Graph, load
from veilgraph.rank.popularity import WHOLE, popularity
from veilgraph.run.measured import about, recall
from veilgraph.run.run import Run


@dataclass(frozen=True)
class Findings:
    """Figures by the runs' names. ``main`` is the run the promise is about."""

    graph: Graph
    runs: dict[str, Run]
    main: str
    quality: dict[str, dict[str, Any]]  # empty, if there is no test split
    popular: dict[str, Any] | None  # what guessing popular answers would reach
    attacks: dict[str, dict[str, Any]]
    no_attack: str  # why there is none, if there is none
    audited: dict[str, Any] | None

    @property
    def run(self) -> Run:
        """The run the promise is about."""
        return self.runs[self.main]


def find(
    runs: Run | str | Path | Sequence[Run | str | Path],
    *,
    graph: Graph | str | Path | None = None,
    canaries: int = 0,
    note: Callable[[str], None] | None = None,
) -> Findings:
    """Rank, attack and (with ``canaries``) audit; what a run has measured before is not measured again.

    Reads confidential data: the graph, to rank, attack and count. Releases: nothing; findings are for the curator.
    """
    many = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    opened = [run if isinstance(run, Run) else Run.open(run) for run in many]
    if not opened:
        raise UsageError("a report needs at least one run.")
    for run in opened:
        run.require_finished()
    source = load(graph) if graph is not None else opened[0].graph()
    told = note or (lambda text: None)
    named = dict(zip(_names(opened), opened))
    main = next(
        (n for n, run in named.items() if run.guarantee == "dp" and run.config.private), next(iter(named))
    )
    quality, popular = {}, None
    if len(source.splits.get("test", ())):
        quality = {name: _quality(name, run, source, told) for name, run in named.items()}
        if len(source.relations) * len(source.entities) <= WHOLE:
            popular = popularity(source, "test")
    attacks, reason = _attacks(named, source, told)
    audited = None
    if canaries and named[main].config.private:
        told(f"auditing with {canaries} canaries")
        steps = named[main].config.text is None  # else by the vectors alone
        audited = audit(named[main], graph=source, canaries=canaries, steps=steps)
    return Findings(source, named, main, quality, popular, attacks, reason, audited)


def _names(runs: Sequence[Run]) -> list[str]:
    names: list[str] = []
    for run in runs:
        kind = (
            f"ε = {rounded_up(run.epsilon, 3)}"
            if run.epsilon
            else {"dp": "confidential dropped"}.get(run.guarantee, run.guarantee)
        )
        name = f"{run.config.model}, {'no privacy' if kind == 'none' else kind}"
        names.append(name if name not in names else f"{name} ({run.folder.name})")
    return names


def _quality(name: str, run: Run, graph: Graph, told: Callable[[str], None]) -> dict[str, Any]:
    """Ranks of the test split, those of each relation too."""
    found = recall(run, METRICS, about(run, graph, split="test"))
    if found is not None and {"relations", "chance_mrr"} <= found.keys():
        told(f"ranked before: {name}")
        return found
    told(f"ranking the test split: {name}")
    return run.evaluate("test", graph=graph, details=True)


def _attacks(
    runs: dict[str, Run], graph: Graph, told: Callable[[str], None]
) -> tuple[dict[str, dict[str, Any]], str]:
    found = {}
    for name, run in runs.items():
        known = recall(run, ATTACKS, about(run, graph, **USUAL))
        if known is not None:
            told(f"attacked before: {name}")
            found[name] = known
            continue
        told(f"attacking: {name}")
        try:
            found[name] = membership(run, graph=graph)
        except InputError as error:
            return {}, str(error)
    return found, ""
