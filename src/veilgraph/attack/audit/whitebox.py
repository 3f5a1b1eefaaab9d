"""An audit of everything a run releases as it releases it: its noisy sums, step by step, and its noisy counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.account.epsilon import spent
from veilgraph.account.events import Event, gaussian, repeated, sampled
from veilgraph.account.promise import Promise
from veilgraph.attack.audit.canaries import plant
from veilgraph.attack.audit.counts import measure_counts
from veilgraph.attack.audit.steps import Measured, measure_steps
from veilgraph.errors import UsageError
from veilgraph.load import Graph
from veilgraph.train import begin
from veilgraph.train.session import Session

ERROR = 0.05
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
    plan = session.private_plan(alone=True)
    plan.pay(0, 1)
    claimed = claim if claim is not None else (run.epsilon if run.epsilon is not None else config.epsilon)
    with_counts = promise.counts
    steps: Measured | None = None
    counts: list[Measured] = []
    if promise.steps:
        given = measure_steps(
            plan, session.state.parameters, planted.statements, ERROR / (2 if with_counts else 1)
        )
        steps = _watched(given, "steps", tell)[0]
    if with_counts and promise.counting.whole:
        again = plant(graph, canaries, np.random.Generator(np.random.SFC64()), chance=1.0, alike=True)
        own = replace(promise.counting, entities=len(again.graph.entities))
        error = ERROR / (2 if steps is not None else 1)
        given = measure_counts(
            again.graph, again.statements, own, promise.prior_noise or 1.0, plan.meter, error
        )
        counts = _watched(given, "releases of counts", tell)

    def total(name: str, rate: float) -> float:
        """ε of the run if its releases had these μ."""
        events: list[Event] = [
            gaussian(1 / min(getattr(one, name), HIGHEST)) for one in counts if getattr(one, name) > 0
        ]
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
        "guarantee": run.guarantee,
        "mechanism": config.mechanism,
        "delta": delta,
    }


def _watched(
    given: Iterator[tuple[int, int] | list[Measured]], what: str, tell: Callable[[str], None] | None
) -> list[Measured]:
    """The last of it; now and then a line says how far it is."""
    told = 0
    for found in given:
        if isinstance(found, list):
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
