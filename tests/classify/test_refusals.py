"""Labels by a path, what is refused and why, and the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.classify.clubs import HOSPITAL, SETTINGS
from veilgraph.classify import classify, folds_of
from veilgraph.classify.config import ClassifyConfig
from veilgraph.cli import main
from veilgraph.errors import ConfigError, InputError, PrivacyError, RunError, UsageError, VeilError
from veilgraph.load import Graph, load
from veilgraph.load.labels import labels_by
from veilgraph.mark import mark


def test_labels_at_the_end_of_a_path(hospital: Graph) -> None:
    found = labels_by(hospital, "admittedTo/wardOf")
    assert all(name.startswith("specialty/") for name in found.names)
    assert all(hospital.entities[int(e)].startswith("patient/") for e in found.entity)
    direct = labels_by(hospital, "specialisesIn")
    assert all(hospital.entities[int(e)].startswith("doctor/") for e in direct.entity)
    with pytest.raises(InputError, match="no entity has a label"):
        labels_by(hospital, "wardOf/admittedTo")
    with pytest.raises(InputError, match="no path"):
        labels_by(hospital, "/")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"guarantee": "edge"}, "give both"),
        ({"epsilon": 1.0}, "give both"),
        ({"guarantee": "moon", "epsilon": 1.0}, "guarantee"),
        ({"guarantee": "edge", "epsilon": 1.0, "into": "sideways"}, "into"),
        ({"guarantee": "edge", "epsilon": 1.0, "drop_confidential": True}, "needs no guarantee"),
        ({"guarantee": "edge", "epsilon": -1.0}, "epsilon"),
        ({"out": "somewhere"}, "nothing may"),
        ({"guarantee": "edge", "epsilon": 1.0, "out": "somewhere", "seeds": 2}, "its own"),
    ],
)
def test_wrong_wishes_are_explained(town: Path, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(Exception, match=says) as error:
        classify(town, **wrong)  # type: ignore[arg-type]
    assert isinstance(error.value, VeilError)
    assert not Path("somewhere").exists()


@pytest.mark.parametrize(
    ("settings", "ignored"),
    [
        ({"guarantee": "edge", "epsilon": 1.0, "model": "rgcn"}, "--model"),
        ({"guarantee": "label", "epsilon": 1.0, "bases": 4, "layers": 2}, "--bases, --layers"),
        ({"guarantee": "node", "epsilon": 1.0, "dimension": 8, "epochs": 3}, "--dimension, --epochs"),
        ({"guarantee": "edge", "epsilon": 1.0, "steps": 5, "sample_rate": 0.1}, "--steps, --sample-rate"),
        ({"places": 8}, "--places"),
        ({"into": "both", "clip": 2.0}, "--into, --clip"),
    ],
)
def test_what_would_be_ignored_is_refused(town: Path, settings: dict[str, object], ignored: str) -> None:
    with pytest.raises(ConfigError, match=f"{ignored} would do nothing"):
        classify(town, **settings)  # type: ignore[arg-type]


def test_a_statement_counts_once_however_often_it_is_there(town: Path) -> None:
    from veilgraph.classify.classify import _task
    from veilgraph.load.labels import read_labels

    graph, config = load(town), ClassifyConfig(guarantee="edge", epsilon=1.0)
    secret = graph.train[graph.secret("train")][:1]
    doubled = graph.with_splits({"train": graph.train, "test": np.concatenate([secret, secret])})
    labels = read_labels(graph)
    folds = folds_of(labels, len(graph.entities), 0.5, 0)
    made = _task(doubled, np.ones(len(doubled.triples), bool), labels, folds, config)
    assert len(made.triples) == len(graph.train)
    assert made.secret.sum() == graph.secret("train").sum()


def test_what_would_promise_less_than_was_asked_for_is_refused(hospital: Graph) -> None:
    heads = hospital.with_marks(mark(hospital, relations=["has*"], unit="head", per_unit=5))
    with pytest.raises(PrivacyError, match="unit is head"):
        classify(heads, by="specialisesIn", guarantee="edge", epsilon=1.0, **HOSPITAL)
    admitted = hospital.with_marks(mark(hospital, relations=["admittedTo"]))
    with pytest.raises(PrivacyError, match="admittedTo"):
        classify(admitted, by="admittedTo/wardOf", guarantee="edge", epsilon=1.0, **HOSPITAL)
    with pytest.raises(PrivacyError, match="specialisesIn"):  # unmarked: everything is confidential
        classify(hospital, by="specialisesIn", guarantee="edge", epsilon=1.0, **HOSPITAL)
    found = classify(admitted, by="admittedTo/wardOf", guarantee="node", epsilon=1.0, steps=5, **HOSPITAL)
    assert found["epsilon"] <= 1.0


def test_a_folder_belongs_to_its_settings(town: Path, tmp_path: Path) -> None:
    classify(town, guarantee="edge", epsilon=3.0, out=tmp_path / "out", **SETTINGS)
    with pytest.raises(RunError, match="other settings"):
        classify(town, guarantee="edge", epsilon=4.0, out=tmp_path / "out", **SETTINGS)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thing").write_text("")
    with pytest.raises(UsageError, match="not a classification"):
        classify(town, guarantee="edge", epsilon=3.0, out=tmp_path / "other", **SETTINGS)


def test_commands(town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    words = ["classify", str(town), "--share", "0.5", "--guarantee", "edge", "--epsilon", "4", "--out", out]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {
        "task",
        "model",
        "accuracy",
        "interval",
        "macro_f1",
        "seeds",
        "epsilon",
        "delta",
        "guarantee",
    } <= set(said)
    assert main(["certificate", out]) == 0
    assert "one confidential statement" in " ".join(capsys.readouterr().out.split())
    assert main(["certificate", "verify", out, "--json"]) == 0
    (tmp_path / "out" / "answers.tsv").write_text("p0\tclub0\t1\n")
    capsys.readouterr()
    assert main(["certificate", "verify", out, "--json"]) == 5
    assert "answers.tsv" in json.dumps(json.loads(capsys.readouterr().out)["reasons"])
