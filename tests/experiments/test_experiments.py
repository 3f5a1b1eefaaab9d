"""Experiments: every one plans trainings that can be run, and one is run from end to end."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import numpy as np
import pytest

from veilgraph.config import TrainConfig
from veilgraph.errors import ConfigError, InputError, UnknownNameError
from veilgraph.load import Graph, load, save
from veilgraph.mark import mark
from veilgraph_experiments import Experiment, available, conduct, dpkge, experiment, find
from veilgraph_experiments.data import prepare
from veilgraph_experiments.dpkge_clusters import mutual_information
from veilgraph_experiments.dpkge_link import LinkPrediction
from veilgraph_experiments.experiment import Scale, as_csv, as_markdown
from veilgraph_experiments.measures import MEASURES


@pytest.fixture(scope="module")
def marked(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("experiments") / "graph"
    save(hospital.with_marks(mark(hospital, relations=["has*"])), folder)
    return load(folder)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", available())
def test_every_experiment_plans_what_can_be_trained(name: str, quick: bool, marked: Graph) -> None:
    found = find(name)
    jobs = found.jobs(dict.fromkeys(found.data, marked), Scale(quick, seeds=2))
    for job in jobs.values():
        config = TrainConfig.of(job.settings or {})
        assert set(job.measures) <= set(MEASURES)
        assert config.epsilon is None or config.mechanism != "touched"
    assert len({job.digest for job in jobs.values()}) <= len(jobs)
    assert found.title
    if not quick:
        assert len(jobs) >= len(found.jobs(dict.fromkeys(found.data, marked), Scale(True)))


def test_names_are_found_or_the_nearest_is_said() -> None:
    with pytest.raises(UnknownNameError, match="dpkge-table7"):
        find("dpkge-table77")


@pytest.mark.parametrize("wrong", [{"seeds": 0}, {"processes": 0}])
def test_nothing_to_do_is_a_usage_error(wrong: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least one"):
        conduct(find("dpkge-figure4"), tmp_path, **wrong)


class Small(LinkPrediction):
    """Three trainings."""

    def _plan(self, scale: Scale) -> list[tuple[str, str, int]]:
        return [("distmult", regime, 0) for regime in ("no privacy", "as published", "counts")]

    def _epochs(self, scale: Scale) -> int:
        return 2


def test_an_experiment_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = [{"model": "distmult", "regime": "no privacy", "mr": 1.0}]
    small: Experiment = Small("small", "A small one", "hospital", False, paper)
    told: list[str] = []
    found = conduct(small, tmp_path, quick=True, processes=2, tell=told.append)
    assert (found["name"], found["paper"], found["trainings"]) == ("small", paper, 3)
    by_regime = {row["regime"]: row for row in found["rows"]}
    assert by_regime["as published"]["epsilon"] is None
    assert 0 < by_regime["counts"]["epsilon"] <= by_regime["counts"]["epsilon_as_published"] + 1e-9
    assert all(0 < row["mrr"] <= 1 for row in found["rows"])
    with (tmp_path / "small" / "table.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 3
    assert "As published" in (tmp_path / "small" / "table.md").read_text(encoding="utf-8")
    assert any("3 of 3 trainings" in line for line in told)

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("everything was done before")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    again = conduct(small, tmp_path, quick=True, processes=2, tell=told.append)
    assert again["rows"] == found["rows"]


def test_a_failed_training_says_where_to_look(tmp_path: Path, marked: Graph) -> None:
    job = dpkge.job(str(tmp_path / "nowhere"), marked, "no privacy", "distmult", None)
    with pytest.raises(InputError, match="a training failed"):
        experiment._perform({"one": job}, tmp_path / "jobs", 1, lambda text: None)


def test_published_epsilon_is_the_published_one() -> None:
    for share, sigma, value in ((0.5, 0.7, 8.79), (0.5, 1.0, 3.92), (1.0, 1.3, 1.81), (1.0, 10.0, 0.25)):
        found = dpkge.published_epsilon(483_142, round(share * 483_142), sigma, 100)
        assert found == pytest.approx(value, rel=0.03)


def test_mutual_information_by_hand() -> None:
    assert mutual_information([0, 0, 1, 1], [1, 1, 0, 0]) == pytest.approx(1)
    assert mutual_information([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(0)
    rng = np.random.default_rng(0)
    one, other = (rng.integers(3, size=3000).tolist() for _ in range(2))
    assert mutual_information(one, other) < 0.01


def test_absent_files_say_where_they_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEILGRAPH_DATA", str(tmp_path))
    for name, word in (("fb15k", "Bordes"), ("yago3-10", "Dettmers"), ("eicu", "VEILGRAPH_DATA")):
        with pytest.raises(InputError, match=word):
            prepare(name, tmp_path / "graphs")
    assert prepare("hospital", tmp_path / "graphs").is_dir()


def test_tables_show_what_is_missing_as_a_dash() -> None:
    rows = [{"a": 1.5, "b": None}, {"a": 1234.5, "c": "x"}]
    small: Experiment = Small("small", "T", "hospital", False, ())
    assert "| 1,234.5 | — | x |" in as_markdown(small, rows)
    assert as_csv(rows).splitlines()[0] == "a,b,c"
