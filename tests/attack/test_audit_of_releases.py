"""Audits of what is released once: what reaches its bound is found to, and what exceeds it."""

from __future__ import annotations

from typing import Any

import pytest

from veilgraph.attack.audit import audit, whitebox
from veilgraph.load import Graph, load, split
from veilgraph.mark import mark
from veilgraph.noise import measure
from veilgraph.noise.integers import lies


@pytest.fixture(scope="module")
def small() -> Graph:
    return split(load("builtin:hospital", patients=60), valid=0.05, test=0.05)


@pytest.fixture(autouse=True)
def _hardly_ever_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whitebox, "ERROR", 0.001)


@pytest.mark.parametrize(
    ("settings", "unit"),
    [
        ({"mechanism": "respond"}, "statement"),
        ({"mechanism": "respond"}, "head"),
        ({"model": "marginals"}, "statement"),
    ],
    ids=["answers", "answers-head", "counts"],
)
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_what_reaches_its_bound_is_found_to(
    epsilon: float, settings: dict[str, Any], unit: str, small: Graph
) -> None:
    """The bound comes within a tenth of the claim, and one release in a thousand audits exceeds it by chance."""
    cap = 3 if unit == "head" else None
    marked = small.with_marks(mark(small, random_share=0.5, unit=unit, per_unit=cap))
    given = {"model": "complex", "threads": 1, "canaries": 400, **settings, "epsilon": epsilon, "delta": 0.0}
    found = audit(marked, steps=True, **given)
    assert found["verdict"] == "consistent"
    near = 0.9 if unit == "statement" else 0.8  # (of each of three answers less can be told)
    assert near * found["epsilon_claimed"] <= found["epsilon_lower_bound"] <= found["epsilon_claimed"]
    assert set(found["releases"]) == {"answers" if "mechanism" in settings else "counts"}


def test_answers_that_lie_too_seldom_are_caught(small: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "lies", lambda cells, epsilon, coins: lies(cells, epsilon + 0.3, coins))
    marked = small.with_marks(mark(small, random_share=0.5))
    given = {"model": "complex", "threads": 1, "canaries": 400, "mechanism": "respond", "epsilon": 1.0}
    assert audit(marked, steps=True, **given)["verdict"] == "violated"
