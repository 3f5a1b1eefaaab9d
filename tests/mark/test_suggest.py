"""What unrestricted statements give away, and the rules that close it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from veilgraph.errors import ConfigError, UnknownNameError, UsageError
from veilgraph.load import Graph, Vocabulary
from veilgraph.mark import mark, mark_by_rules, proposal, suggest
from veilgraph.mark.units import units

PATIENTS, WARDS = 200, 10


def hospital(rng: np.random.Generator, honest: float) -> Graph:
    """Everyone is on a ward, every ward has a floor, and with probability ``honest`` a ward says what one suffers from."""
    wards = rng.integers(WARDS, size=PATIENTS)
    diseases = np.where(rng.random(PATIENTS) < honest, wards, rng.integers(WARDS, size=PATIENTS))
    names = [f"patient/{i}" for i in range(PATIENTS)]
    names += [f"{kind}/{i}" for kind in ("ward", "disease", "floor", "colour") for i in range(WARDS)]
    at = {name: i for i, name in enumerate(sorted(names))}
    likes, floor, ward, suffers = range(4)  # in the order of their names
    rows = [(at[f"patient/{i}"], ward, at[f"ward/{w}"]) for i, w in enumerate(wards)]
    rows += [(at[f"patient/{i}"], suffers, at[f"disease/{d}"]) for i, d in enumerate(diseases)]
    rows += [(at[f"ward/{i}"], floor, at[f"floor/{i}"]) for i in range(WARDS)]
    rows += [
        (at[f"patient/{i}"], likes, at[f"colour/{c}"])
        for i, c in enumerate(rng.integers(WARDS, size=PATIENTS))
    ]
    relations = Vocabulary(["likes", "onFloor", "onWard", "suffersFrom"], "relation")
    return Graph(Vocabulary(names), relations, {"train": np.array(rows, np.int32)})


def test_a_telling_ward_is_found_with_its_path() -> None:
    graph = hospital(np.random.default_rng(0), 0.9)
    found = suggest(graph.with_marks(mark(graph, relations=["suffersFrom"])))
    ways = {way.path: way for way in found}
    assert set(ways) == {("onWard",), ("onWard", "onFloor")}
    direct = ways[("onWard",)]
    assert 150 < direct.exposed <= PATIENTS
    assert direct.exposed - direct.by_chance > 100
    assert 0.8 < direct.confidence <= 1
    assert direct.lift > 5
    assert "suffersFrom" in direct.example
    assert "patient/" not in direct.example
    assert found == suggest(graph, ["suffersFrom"])
    assert [way.path for way in suggest(graph, ["suffersFrom"], steps=1)] == [("onWard",)]


def test_a_ward_that_says_nothing_is_not_suggested() -> None:
    """One by one the others decide: nobody is exposed by their own statement, and chance is not called a leak."""
    for seed in range(5):
        graph = hospital(np.random.default_rng(seed), 0.0)
        found = suggest(graph, ["suffersFrom"])
        assert sum(way.exposed for way in found) <= 0.05 * PATIENTS


def test_luck_is_not_called_a_leak() -> None:
    """Loose demands on unrelated values: many guesses, some of them right, none of them reported; real leaks stay."""
    loose = {"confidence": 0.15, "lift": 1.1, "support": 3}
    lucky = 0
    for seed in range(20):
        graph = hospital(np.random.default_rng(seed), 0.0)
        assert suggest(graph, ["suffersFrom"], **loose) == []  # each fails by chance at most once in twenty
        lucky += len(suggest(graph, ["suffersFrom"], **loose, luck=1.0))
    assert lucky > 0
    graph = hospital(np.random.default_rng(0), 0.9)
    assert all(way.luck < 1e-6 for way in suggest(graph, ["suffersFrom"], **loose) if "onWard" in way.path)


def test_proposed_rules_close_the_way(tmp_path: Path) -> None:
    graph = hospital(np.random.default_rng(1), 0.9)
    marked = graph.with_marks(mark(graph, relations=["suffersFrom"], unit="head", per_unit=4))
    document = proposal(marked, suggest(marked))
    assert "reads confidential statements" in document.pop("decided_from")[0]
    assert document == {
        "unit": "head",
        "per_unit": 4,
        "rules": [{"relation": "suffersFrom"}, {"relation": "onWard"}],
    }
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    closed = graph.with_marks(mark_by_rules(graph, path))
    assert (closed.marks.unit, closed.marks.per_unit) == ("head", 4)
    left = [way for way in suggest(closed) if way.confidential == "suffersFrom"]
    assert left == []


def test_rules_that_make_no_sense_are_refused() -> None:
    graph = hospital(np.random.default_rng(2), 0.9)
    with pytest.raises(UsageError, match="nothing is marked"):
        suggest(graph)
    with pytest.raises(UnknownNameError, match="suffersFrom"):
        mark_by_rules(graph, {"rules": [{"relation": "sufersFrom"}]})
    with pytest.raises(ConfigError, match="not one of"):
        mark_by_rules(graph, {"rules": [{"relations": "suffersFrom"}]})
    with pytest.raises(UsageError, match="nothing says"):
        mark_by_rules(graph, {"rules": []})
    kept = mark_by_rules(graph, {"rules": [{"relation": "likes"}, {"relation": "gone"}]}, absent=True)
    assert [dict(rule) for rule in kept.rules] == [{"relation": "likes"}]
    with pytest.raises(ConfigError, match="allowed or refused"):
        mark_by_rules(graph, {"rules": [{"relation": "likes"}], "absent": True})


def test_a_group_holds_the_entity_it_is_named_by() -> None:
    """A stay belongs to its patient, and so does what is said about the patient directly."""
    names = Vocabulary(["patient/1", "patient/2", "stay/1", "stay/2", "stay/3", "x"])
    relations = Vocabulary(["has", "ofPatient"], "relation")
    rows = [(2, 1, 0), (3, 1, 0), (4, 1, 1), (2, 0, 5), (3, 0, 5), (4, 0, 5), (0, 0, 5), (1, 0, 5)]
    graph = Graph(names, relations, {"train": np.array(rows, np.int32)})
    marked = graph.with_marks(mark(graph, relations=["has"], unit="group:ofPatient"))
    found = units(marked)
    assert (found == found[[0, 0, 2, 0, 2]]).all()
    assert found[0] != found[2]
