"""The one list of releases: what is settled, paid and verified follows from it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from veilgraph.account.epsilon import spent
from veilgraph.account.events import gaussian
from veilgraph.account.ledger import Ledger
from veilgraph.account.promise import Promise


def test_what_is_settled_keeps_the_budget_with_every_release() -> None:
    """ε asked for is what all releases of a promise cost together, and hardly less: none of them is forgotten where noise is chosen."""
    facts = {"units": 2000.0, "per_unit": 2, "entities": 300, "relations": 5}
    every = {
        "epsilon": 1.0,
        "private_steps": 30,
        "sample_rate": 0.1,
        "prior": "marginals",
        "clip_quantile": 0.5,
    }
    for left_out in (None, "prior", "clip_quantile"):
        given = {key: value for key, value in every.items() if key != left_out}
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(Path(folder) / "ledger.jsonl")
            ledger.charge(gaussian(100.0), "noisy number of confidential units")
            promise = Promise.of(given, facts).settled(ledger)
        cost = spent(promise.events(), promise.delta).epsilon
        assert 0.97 < cost <= 1.0, left_out
        assert len(promise.releases()) == 2 + ("prior" in given) + ("clip_quantile" in given)


def test_a_promise_names_what_a_ledger_lacks() -> None:
    """Each release left out, a step of another price, a step too few: all are named, and nothing is where all is there."""
    facts = {"units": 2000.0, "per_unit": 1, "entities": 300, "relations": 5}
    settings = {
        "noise_multiplier": 2.0,
        "private_steps": 30,
        "sample_rate": 0.1,
        "prior": "marginals",
        "prior_noise": 3.0,
    }
    promise = Promise.of({**settings, "clip_quantile": 0.5, "noise_decay": 0.5}, facts)
    events = promise.events()

    def lacks(events: list[Any], **more: Any) -> list[str]:
        return promise.missing(events, **{"counts_are_there": True, "due": None, "ended": False, **more})

    assert lacks(events) == []
    for place in range(len(events)):
        assert lacks([*events[:place], *events[place + 1 :]]), events[place]
    cheaper = Promise.of({**settings, "noise_multiplier": 4.0}, facts).steps_between(0, 30)
    assert lacks([*events, *cheaper])
    assert lacks(promise.events()[:-1], due=10) == []  # (over after ten steps)


def test_parts_of_a_budget_never_exceed_it() -> None:
    """Answers and counts as whole numbers, whatever ε and however many statements a unit has: six digits are cut, not rounded."""
    from pathlib import Path

    from veilgraph.account.ledger import Ledger

    empty = Ledger(Path("nowhere"))
    for number in range(1, 200):
        epsilon = 0.05 + number * 0.0371234567
        for per_unit in (1, 3, 7):
            asks = Promise(10.0, per_unit, 5, 2, epsilon, delta=0.0, mechanism="respond", accept_reached=True)
            counts = Promise(10.0, per_unit, 5, 2, epsilon, delta=0.0, counts=True)
            for promise in (asks, counts):
                empty.lines = [{"what": "", "charge": promise.number.event}]
                held = promise.settled(empty)
                assert spent(held.events(), 0.0).epsilon <= epsilon * (1 + 1e-12)
