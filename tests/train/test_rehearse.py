"""A rehearsal reads no confidential statement and says what several budgets would cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilgraph.errors import InputError, UsageError
from veilgraph.load import Graph
from veilgraph.mark import mark, unrestricted
from veilgraph.report.forecast import forecast
from veilgraph.train import rehearse as module
from veilgraph.train.rehearse import rehearse

QUICK = {"model": "distmult", "dimension": 8, "epochs": 2, "threads": 1, "negatives": 8}


def test_rehearsal_reads_nothing_confidential(hospital: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = hospital.with_marks(mark(hospital, relations=["has*"]))
    secret = {tuple(t) for s, a in graph.splits.items() for t in a[graph.secret(s)].tolist()}
    seen: list[Graph] = []
    real = module.train
    monkeypatch.setattr(module, "train", lambda graph, **rest: (seen.append(graph), real(graph, **rest))[1])
    found = rehearse(graph, (1.0, 8.0), mechanism="dense", **QUICK)
    assert len(seen) == 4
    assert all(secret.isdisjoint(map(tuple, g.triples.tolist())) for g in seen)
    assert [row["budget"] for row in found["rows"]] == [1.0, 8.0]
    assert all(0 < row["epsilon"] <= row["budget"] for row in found["rows"])
    assert found["rows"][0]["noise_multiplier"] > found["rows"][1]["noise_multiplier"]
    assert found["rows"][0]["count_deviation"] > found["rows"][1]["count_deviation"]
    assert all("relation" in rule for rule in found["stand_in"])
    assert 0 < found["no_privacy"]["mrr"] <= 1
    page = forecast(found)
    assert page.count("<svg") == 1
    assert "No confidential statement was read" in page


def test_statements_stand_in_where_marks_go_by_statement(hospital: Graph) -> None:
    graph = hospital.with_marks(mark(hospital, random_share=0.3))
    found = rehearse(graph, [2.0], share=0.25, **QUICK)
    assert [rule["random_share"] for rule in found["stand_in"]] == [0.25]
    count = found["statements"]
    assert count["unrestricted"] + count["stand_in"] == len(unrestricted(graph).train)
    assert (
        0.15 < count["stand_in"] / len(unrestricted(graph).train) < 0.35
    )  # marks of the same seed leave some
    assert count["judged"] > 0


def test_what_cannot_be_rehearsed_is_said(hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is marked"):
        rehearse(hospital)
    with pytest.raises(UsageError, match="positive"):
        rehearse(hospital.with_marks(mark(hospital, random_share=0.5)), [0.0])
    with pytest.raises(InputError, match="to rehearse on"):
        rehearse(hospital.with_marks(mark(hospital, everything=True)))
