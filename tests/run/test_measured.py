"""Figures stay with a run, for just what they were measured on: a report does not rank or attack again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from veilgraph.layout import ATTACKS, METRICS
from veilgraph.load import Graph
from veilgraph.mark import mark
from veilgraph.report.findings import find
from veilgraph.run.run import Run
from veilgraph.train import train


@pytest.fixture
def run(hospital: Graph, tmp_path: Path) -> Run:
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    settings = {"model": "distmult", "dimension": 8, "epochs": 1, "threads": 1, "epsilon": 4.0}
    return train(graph, out=tmp_path / "run", **settings)


def test_a_report_measures_once(run: Run) -> None:
    first: list[str] = []
    found = find(run, graph=run.graph(), note=first.append)
    assert any(line.startswith("attacking") for line in first)
    assert any(line.startswith("ranking") for line in first)
    again: list[str] = []
    assert find(run, graph=run.graph(), note=again.append).attacks == found.attacks
    assert [line.partition(":")[0] for line in again] == ["ranked before", "attacked before"]
    for name in (METRICS, ATTACKS):
        assert stat.S_IMODE((run.folder / name).stat().st_mode) == 0o600, "for the curator alone"


def test_other_marks_or_statements_are_measured_anew(run: Run, hospital: Graph) -> None:
    find(run, graph=run.graph(), note=None)
    told: list[str] = []
    with pytest.raises(Exception, match="not the graph"):
        find(run, graph=hospital.with_marks(mark(hospital, random_share=0.2)), note=told.append)
    assert any(line.startswith(("ranking", "attacking")) for line in told), (
        "figures of another graph are not shown"
    )
