"""Audits: consistent for every sound mechanism, violated for what is broken."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.conftest import random_graph
from veilgraph.attack.audit import audit
from veilgraph.attack.audit.bound import best_guess, lower_bound, p_value
from veilgraph.attack.audit.canaries import plant
from veilgraph.errors import PrivacyError, UsageError
from veilgraph.load import Graph, load, split
from veilgraph.mark import mark, units
from veilgraph.train.private import mechanisms, separable
from veilgraph.train.private.clip import factors, squares
from veilgraph.train.private.measure import Asked
from veilgraph.train.private.mechanisms import mechanism_class

# Few full-batch steps of TransE, whose gradients are large from the start: the strongest test per second.
STRONG = {
    "model": "transe",
    "dimension": 32,
    "epochs": 1,
    "private_steps": 4,
    "sample_rate": 1.0,
    "negatives": 8,
    "private_learning_rate": 1.0,
    "private_optimiser": "sgd",
    "epsilon": 1.0,
    "prior": "none",
    "threads": 1,
    "canaries": 1000,
}


@pytest.fixture(scope="module")
def small() -> Graph:
    return split(load("builtin:hospital", patients=60), valid=0.05, test=0.05)


def test_bound_of_a_perfect_and_of_a_blind_attacker() -> None:
    assert lower_bound(1000, 1000, 1000, 1e-6, 0.05) > 5
    assert lower_bound(1000, 1000, 500, 1e-6, 0.05) == 0
    assert p_value(100, 100, 60, 10.0, 0.0) > 0.999
    values = [p_value(200, 200, 130, e, 1e-6) for e in (0.0, 0.3, 0.6, 1.0, 2.0)]
    assert values == sorted(values)


def test_bound_holds_for_randomised_response() -> None:
    """Guesses right with probability e^ε/(1 + e^ε) exactly: the bound exceeds ε in at most 5 % of 300 trials (p > 1e-4)."""
    rng, epsilon, above = np.random.default_rng(0), 1.0, 0
    for _ in range(300):
        included = rng.random(400) < 0.5
        kept = rng.random(400) < 1 / (1 + np.exp(-epsilon))
        score = np.where(included == kept, 1.0, -1.0) + 1e-6 * rng.random(400)
        above += best_guess({"answer": score}, included, 1e-9).epsilon > epsilon
    assert above <= 27


def test_canaries_are_units_nobody_else_has(small: Graph) -> None:
    for unit in ("statement", "head"):
        marked = small.with_marks(mark(small, everything=True, unit=unit))
        planted = plant(marked, 50, np.random.default_rng(0))
        assert planted.statements.shape == (50, planted.graph.marks.per_unit, 3)
        known = set(map(tuple, planted.graph.train.tolist()))
        for included, canary in zip(planted.included, planted.statements):
            assert all((tuple(s) in known) == included for s in canary.tolist())
        before = len(np.unique(units(marked)))
        assert len(np.unique(units(planted.graph))) == before + planted.included.sum()
        names = {planted.graph.entities[e] for e in np.unique(planted.statements[:, :, [0, 2]])}
        assert all(name.startswith("~canary") for name in names)
        assert len(planted.graph.entities) == len(small.entities) + len(names)


@pytest.mark.parametrize("name", [n for n in mechanisms.names() if mechanism_class(n).guarantee == "dp"])
def test_sound_mechanisms_are_consistent(name: str, small: Graph) -> None:
    found = audit(small, **{**STRONG, "mechanism": name})
    assert found["verdict"] == "consistent"
    assert found["epsilon_claimed"] <= 1.0


COUNTS = {"model": "marginals", "epsilon": 1.0, "threads": 1, "canaries": 1000}


def test_counts_are_consistent(small: Graph) -> None:
    found = audit(small, **COUNTS)
    assert found["verdict"] == "consistent"
    assert found["epsilon_lower_bound"] < 1.0


def test_counts_with_too_little_noise_are_caught(small: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asked, "deviation", property(lambda self: self.sensitivity * self.multiplier / 10))
    found = audit(small, **COUNTS)
    assert found["verdict"] == "violated"
    assert found["epsilon_lower_bound"] > 1.0


def test_touched_rows_are_caught(small: Graph) -> None:
    """At small ε, where the noise is large, its very presence betrays who is in."""
    found = audit(small, **{**STRONG, "mechanism": "touched", "epsilon": 0.5})
    assert found["verdict"] == "violated"
    assert found["guarantee"] != "dp"


def test_too_little_noise_is_caught(small: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asked, "deviation", property(lambda self: self.sensitivity * self.multiplier / 10))
    found = audit(small, **STRONG)
    assert found["verdict"] == "violated"
    assert found["epsilon_lower_bound"] > 1.0


def test_a_clip_that_ignores_collisions_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit's 128 statements meet the same rows: adding their squares instead of them misses a factor of up to 11."""

    def careless(parts, batch, backward, unit, clip):  # type: ignore[no-untyped-def]
        b, reach = len(unit), torch.linalg.vector_norm(parts.on_negative, dim=1) * parts.reach
        each = sum(squares(rows) for rows in (parts.head, parts.tail, *parts.relations))
        each = each + reach[:b] ** 2 + reach[b:] ** 2
        norms = torch.zeros(int(unit.max()) + 1).index_add_(0, unit, each).sqrt()
        factor = factors(norms, unit, batch, clip)
        parts.on_negative.mul_(factor.repeat(2).unsqueeze(1))
        return norms, factor

    graph = random_graph(entities=200, relations=128, statements=1500)
    graph = graph.with_marks(mark(graph, everything=True, unit="head", per_unit=128))
    settings = {**STRONG, "canaries": 600}
    assert audit(graph, **settings)["verdict"] == "consistent"
    monkeypatch.setattr(separable, "_clip_units", careless)
    found = audit(graph, **settings)
    assert found["verdict"] == "violated"


def test_a_run_without_a_claim_cannot_be_audited(small: Graph) -> None:
    with pytest.raises(PrivacyError, match="no claim"):
        audit(small, model="transe")
    with pytest.raises(UsageError, match="at least 10"):
        audit(small, epsilon=1.0, canaries=3)
