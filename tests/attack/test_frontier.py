"""The frontier: every sanitiser at several strengths, as a table, a picture, and rows of the experiment."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

from tests.serve.shop import USERS, make_shop
from veilgraph.attack.attribute import frontier
from veilgraph.cli import main
from veilgraph.run.run import Run
from veilgraph_experiments.aia_lists import Case, Lists
from veilgraph_experiments.experiment import Scale
from veilgraph_experiments.measures import lists


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_shop(tmp_path_factory.mktemp("shop"))


def test_the_frontier_is_a_table_and_a_picture_for_the_curator(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {"random": ("random:keep=10", "random:keep=2"), "balanced": ("balanced",)}
    monkeypatch.setattr(frontier, "STRENGTHS", {True: few, False: few})
    words = [
        "attack",
        "attribute",
        str(run.folder),
        "--attribute",
        "is",
        "--attacker",
        "naive bayes",
        "--top",
        "5",
    ]
    assert main([*words, "--frontier", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["sanitiser"] for row in rows] == [
        "none",
        "random:keep=2",
        "balanced",
    ]  # ten cannot be kept of five
    assert rows[0]["q_u"] == 1 > rows[1]["q_u"]
    assert all(row["lists"] == "new items only" and 0 <= row["strongest"] <= 1 for row in rows)
    assert rows[0]["strongest"] > 0.8  # the shop tells the kind
    picture = run.folder / "frontier.svg"
    assert picture.stat().st_mode & 0o077 == 0
    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert {"random", "balanced", "a coin"} <= {
        text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")
    }
    assert main([*words, "--frontier"]) == 0
    assert "random:keep=2" in capsys.readouterr().out


def test_rows_of_the_experiment_are_means_over_seeds(run: Run, tmp_path: Path) -> None:
    """Its measure works on a run and on a simple recommender; the quick experiment has both regimes and two pictures each."""
    experiment, scale, graph = Lists(), Scale(quick=True), run.graph()
    more = {
        "relation": "took",
        "listed": "item/",
        "attribute": "is",
        "knowledge": "people",
        "attacker": "naive bayes",
        "top": 5,
        "seed": 0,
    }
    chains = {"random": ["random:keep=3"], "balanced": ["balanced"]}
    results = {}
    for case in experiment.cases(scale):
        asked = {**more, "recommender": case.recommender, "repeat": case.repeat, "chains": chains}
        results[f"{case} 0"] = lists(None if case.repeat else run, graph, asked)
    rows = experiment.rows({}, scale, results)
    assert len(rows) == 2 * 3
    assert {row["targets"] for row in rows} == {USERS}
    assert all(row["seeds"] == 1 and 0 <= row["strongest ±"] < 0.2 for row in rows)
    for row in rows:
        row["attribute"], row["top"] = "gender", 10  # as in the experiment's own graph
    assert set(experiment.pictures(rows)) == {"figure", "figure-ndcg", "figure-new", "figure-new-ndcg"}
    assert Case() in experiment.cases(scale)
    assert len(experiment.paper) == 20
