"""An audit of everything a run releases as it releases it: its noisy sums, step by step, and its noisy counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from veilgraph.account.epsilon import spent
from veilgraph.account.events import Event, gaussian, repeated, sampled
from veilgraph.account.prices import answered
from veilgraph.account.promise import Promise
from veilgraph.attack.audit.canaries import plant
from veilgraph.attack.audit.counts import measure_counts
from veilgraph.attack.audit.pure import Guessed, measure_answers, measure_whole
from veilgraph.attack.audit.steps import Measured, measure_steps
from veilgraph.errors import UsageError
from veilgraph.load import Graph
from veilgraph.noise.gauss import source
from veilgraph.noise.measure import Meter
from veilgraph.train import begin
from veilgraph.train.answers import counts_of
from veilgraph.train.session import Session

ERROR = 0.05
T = TypeVar("T")
LARGEST = 20.0  # ε of a release without δ: what could be refuted beyond is not worth computing
HIGHEST = 5.0  # μ of one release: what could be refuted beyond is not worth computing
NEGATIVES = 16  # few, so that hardly any canary is among them; clipping must do for any number
PLAIN = {  # what comes after the noise has no part in the promise
    "shrinkage": "none",
    "private_negatives": NEGATIVES,
}


def audit_steps(
    graph: Graph,
    settings: dict[str, Any],
    canaries: int,
    claim: float | None,
    folder: Path,
    tell: Callable[[str], None] | None,
) -> dict[str, Any]:
    """Begin the run, see it pay, then take its steps and its counts as often as it needs to know their noise."""
    settings = {k: v for k, v in settings.items() if k not in ("clip_quantile", "averaging")}
    if settings.get("text") is not None:
        raise UsageError("trainings on descriptions are audited by their vectors: leave --steps out.")
    planted = plant(graph, canaries, np.random.Generator(np.random.SFC64()), chance=1.0)
    run = begin(planted.graph, out=folder / "run", **settings)
    units = float(run.facts["units"])
    session = Session.open(
        planted.graph, run.config.with_values(**PLAIN), run.folder, units
    )  # (counts are drawn here)
    promise = Promise.of(run.config.as_dict(), run.facts)
    config, delta = run.config, promise.delta
    meter = Meter(session.ledger, source()) if session.ledger is not None else None
    assert meter is not None
    several = promise.counts + promise.asks + bool(promise.steps)
    steps: Measured | None = None
    counts: list[Measured] = []
    guessed: dict[str, Guessed] = {}
    if promise.steps:
        plan = session.private_plan(alone=True)
        plan.pay(0, 1)
        given = measure_steps(plan, session.state.parameters, planted.statements, ERROR / several)
        steps = _watched(given, "steps", tell)[0]
    if promise.counts and promise.counting.whole:
        again = plant(graph, canaries, np.random.Generator(np.random.SFC64()), chance=1.0, alike=True)
        own = replace(promise.counting, entities=len(again.graph.entities))
        if own.epsilon is not None:
            whole = measure_whole(again.graph, again.statements, own, meter, ERROR / several)
            guessed["counts"] = _watched(whole, "releases of counts", tell)
        else:
            noise = promise.prior_noise or 1.0
            given = measure_counts(again.graph, again.statements, own, noise, meter, ERROR / several)
            counts = _watched(given, "releases of counts", tell)
    if promise.asks:
        asked = measure_answers(planted.graph, promise, canaries, meter, ERROR / several, _counted(session))
        guessed["answers"] = _watched(asked, "rounds of answers", tell)

    # (what is claimed is known only after it was paid)
    claimed = claim if claim is not None else (run.epsilon if run.epsilon is not None else config.epsilon)

    def total(name: str, rate: float) -> float:
        """ε of the run if its releases had these μ, and those without a δ this ε."""
        events: list[Event] = [
            gaussian(1 / min(getattr(one, name), HIGHEST)) for one in counts if getattr(one, name) > 0
        ]
        for what, one in guessed.items():
            found = min(one.epsilon if name == "mu" else one.most, LARGEST)
            events += [answered(promise.per_unit if what == "answers" else 1, found)] if found > 0 else []
        of_steps = float(getattr(steps, name)) if steps is not None else 0.0
        if of_steps and rate:
            events += [
                repeated(times, sampled(rate, gaussian(factor / min(of_steps, HIGHEST))))
                for times, factor in promise.stages.parts(0, promise.steps)
            ]
        return spent(events, delta).epsilon if events else 0.0

    return {
        "epsilon_lower_bound": total("mu", steps.rate if steps is not None else 0.0),
        "epsilon_claimed": claimed,
        "power": total("most", steps.expected_rate if steps is not None else 0.0),
        "mechanism_level": "steps",
        "canaries": canaries,
        "steps": _said(steps),
        "counts": [_said(one) for one in counts] or None,
        "releases": {what: asdict(one) for what, one in guessed.items()} or None,
        "guarantee": run.guarantee,
        "mechanism": config.mechanism,
        "delta": delta,
    }


def _counted(session: Session) -> np.ndarray | None:
    """What charged counts say, where they say which cells are asked about."""
    prior = session.state.parameters.prior
    return None if prior is None else counts_of(prior)


def _watched(given: Iterator[tuple[int, int] | T], what: str, tell: Callable[[str], None] | None) -> T:
    """The last of it; now and then a line says how far it is."""
    told = 0
    for found in given:
        if not isinstance(found, tuple):
            return found
        done, of = found
        if tell is not None and done * 10 // of > told:
            told = done * 10 // of
            tell(f"{what}: {done} of {of}")
    raise AssertionError("an audit ends with what it found")


def _said(found: Measured | None) -> dict[str, Any] | None:
    """For people: noise in units of what is charged for."""
    if found is None:
        return None
    return {
        "taken": found.steps,
        "noise_at_most": found.expected_mu / found.mu if found.mu else None,
        "rate_at_least": found.rate,
        "rate_charged": found.expected_rate,
        "reach": found.reach,
    }
