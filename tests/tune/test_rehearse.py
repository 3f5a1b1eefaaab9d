"""A rehearsal reads no confidential statement and says what several budgets would cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilgraph.errors import ConfigError, InputError, UsageError
from veilgraph.load import Graph, load, split
from veilgraph.mark import mark, unrestricted
from veilgraph.report.forecast import forecast
from veilgraph.tune import rehearse as module
from veilgraph.tune.rehearse import JUDGED, advice, rehearse

QUICK = {"model": "distmult", "dimension": 8, "epochs": 2, "threads": 1, "negatives": 8}


@pytest.fixture(scope="module")
def larger() -> Graph:
    """Large enough to judge by."""
    return split(load("builtin:hospital", patients=500), valid=0.05, test=0.2)


def test_rehearsal_reads_nothing_confidential(larger: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = larger.with_marks(mark(larger, relations=["has*"]))
    secret = {tuple(t) for s, a in graph.splits.items() for t in a[graph.secret(s)].tolist()}
    seen: list[Graph] = []
    real = module.train
    monkeypatch.setattr(module, "train", lambda graph, **rest: (seen.append(graph), real(graph, **rest))[1])
    found = rehearse(graph, (1.0, 8.0), stand_ins=2, mechanism="dense", **QUICK)
    assert len(seen) == 10
    assert all(secret.isdisjoint(map(tuple, g.triples.tolist())) for g in seen)
    first, last = found["rows"]
    assert [row["epsilon"] for row in found["rows"]] == [1.0, 8.0]
    assert all(0 < row["spent"] <= row["epsilon"] for row in found["rows"])
    assert first["noise_multiplier"] > last["noise_multiplier"]
    assert first["count_deviation"] > last["count_deviation"]
    assert 0.5 < first["ceiling"] < last["ceiling"] < 1
    assert 0 < first["mu"] < last["mu"]
    assert all(count >= JUDGED for count in found["statements"]["judged"])
    assert first["judged"] == sum(found["statements"]["judged"])
    assert all("relation" in rule for rules in found["stand_in"] for rule in rules)
    assert all(row["interval"][0] <= row["mrr"] <= row["interval"][1] for row in found["rows"])
    assert found["chance"] < found["no_privacy"]["mrr"] <= 1
    page = forecast(found)
    assert page.count("<svg") == 2
    assert found["advice"].split("(")[0] in page
    assert "No confidential statement was read" in page


def test_stand_ins_differ_and_a_stopped_plan_goes_on(
    larger: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = larger.with_marks(mark(larger, relations=["has*"]))
    whole = rehearse(graph, (2.0,), stand_ins=2, prior="none", private_steps=0, **QUICK)
    assert whole["stand_in"][0] != whole["stand_in"][1]
    real, taken = module.train, []

    def stops(graph: Graph, **rest: object) -> object:
        if len(taken) == 3:
            raise KeyboardInterrupt
        taken.append(graph)
        return real(graph, **rest)

    monkeypatch.setattr(module, "train", stops)
    keep, given = tmp_path / "parts.jsonl", {**QUICK, "prior": "none", "private_steps": 0}
    with pytest.raises(KeyboardInterrupt):
        rehearse(graph, (2.0,), stand_ins=2, keep=keep, **given)
    monkeypatch.setattr(module, "train", lambda graph, **rest: (taken.append(graph), real(graph, **rest))[1])
    again = rehearse(graph, (2.0,), stand_ins=2, keep=keep, **given)
    assert len(taken) == 8  # none of them twice
    assert again["no_privacy"] == whole["no_privacy"]
    told: list[str] = []
    rehearse(graph, (2.0,), stand_ins=2, keep=keep, tell=told.append, **given)
    assert told == []
    rehearse(graph, (4.0,), stand_ins=2, keep=keep, tell=told.append, **given)  # another plan begins anew
    assert len(told) == 8
    assert "left" in told[1]


def test_advice_is_about_what_is_sure() -> None:
    def row(epsilon: float, mrr: float, gain: float, half: float) -> dict[str, object]:
        return {
            "epsilon": epsilon, "mrr": mrr, "gain": gain, "gain_interval": [gain - half, gain + half], "ceiling": 0.7
        }  # fmt: skip

    found = {
        "dropped": {"mrr": 0.2},
        "no_privacy": {"mrr": 0.4},
        "rows": [row(1, 0.21, 0.01, 0.05), row(4, 0.3, 0.1, 0.05)],
    }
    assert "ε = 4 is the smallest" in advice(found)
    assert "about 50 % of what they add" in advice(found)
    assert "70.0 % of cases at most" in advice(found)
    assert "leave them out" in advice({**found, "rows": [row(1, 0.21, 0.01, 0.05)]})
    assert "add nothing here" in advice({**found, "no_privacy": {"mrr": 0.1}})
    alone = {**row(1, 0.21, 0.01, 0.05), "gain_interval": None}
    assert "--stand-ins 3" in advice({**found, "rows": [alone]})


def test_statements_stand_in_where_marks_go_by_statement(larger: Graph) -> None:
    graph = larger.with_marks(mark(larger, random_share=0.3))
    found = rehearse(graph, [2.0], share=0.25, stand_ins=1, **QUICK)
    assert [rule["random_share"] for (rule,) in found["stand_in"]] == [0.25]
    count = found["statements"]
    assert count["unrestricted"][0] + count["stand_in"][0] == len(unrestricted(graph).train)
    share = count["stand_in"][0] / len(unrestricted(graph).train)
    assert 0.15 < share < 0.35  # marks of the same seed leave some
    assert found["rows"][0]["interval"] is None  # one alone has none


def test_what_cannot_be_rehearsed_is_said(hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is marked"):
        rehearse(hospital)
    with pytest.raises(ConfigError, match="positive"):
        rehearse(hospital.with_marks(mark(hospital, random_share=0.5)), [0.0])
    with pytest.raises(ConfigError, match="one stand-in"):
        rehearse(hospital.with_marks(mark(hospital, random_share=0.5)), stand_ins=0)
    with pytest.raises(InputError, match="to rehearse on"):
        rehearse(hospital.with_marks(mark(hospital, everything=True)))
    with pytest.raises(InputError, match="fewer than 100 figures are noise"):
        rehearse(hospital.with_marks(mark(hospital, random_share=0.8)), share=0.1)


def test_a_plan_compares_with_the_better_way_of_dropping(larger: Graph) -> None:
    """Rows may have exact counts of unrestricted statements: dropping gets them too, at no ε."""
    graph = larger.with_marks(mark(larger, random_share=0.3, seed=1))
    asked = {**QUICK, "mechanism": "lazy", "private_parameters": "relations", "private_steps": 1}
    found = rehearse(graph, (1.0,), stand_ins=2, **asked)
    (row,) = found["rows"]
    better = max(found["dropped"]["mrr"], found["dropped_counted"]["mrr"])
    assert row["gain"] == pytest.approx(row["mrr"] - better)
    assert f"MRR {better:.3f} without" in found["advice"]
    assert "the rest counted" in forecast(found)
    assert rehearse(graph, (1.0,), stand_ins=1, prior="marginals", **QUICK)["dropped_counted"] is None


def test_a_kept_plan_of_another_unit_is_begun_anew(larger: Graph, tmp_path: Path) -> None:
    """Prices and stand-ins follow from unit, cap and marks; and a group is rehearsed by heads, which is said."""
    told: list[str] = []

    def plan(unit: str, per_unit: int | None) -> dict[str, object]:
        graph = larger.with_marks(mark(larger, relations=["hasDiagnosis"], unit=unit, per_unit=per_unit))
        told.clear()
        keep = tmp_path / "parts.jsonl"
        return rehearse(graph, (1.0,), stand_ins=1, keep=keep, tell=told.append, model="marginals", threads=1)

    first = plan("statement", None)
    assert told
    assert plan("statement", None) == first
    assert not told
    for unit, per_unit in (("head", 20), ("head", 10), ("group:admittedTo", 10)):
        found = plan(unit, per_unit)
        assert told
        assert found["unit"] == unit
    assert found["rehearsed_unit"] == "head"
    assert "was rehearsed as head" in forecast(found)


def test_stand_ins_differ_where_there_are_enough(larger: Graph) -> None:
    graph = larger.with_marks(mark(larger, relations=["hasDiagnosis"]))
    for seed in range(4):
        stages: list[Graph] = []
        for number in range(3):
            before = [module._rules(stage) for stage in stages]
            stages.append(module._stage(graph, 0.5, seed + number, before))
        assert len({stage.marks.rules[0]["relation"] for stage in stages if stage.marks is not None}) == 3
