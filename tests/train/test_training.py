"""Training as a whole: settings, defaults, early stopping, schedules, refusals, tuning."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import random_graph
from veilgraph.config import ENCODER, TEXT, TrainConfig
from veilgraph.config.asked import PRIVACY
from veilgraph.errors import ConfigError, InputError, RunError, UsageError
from veilgraph.load import Graph
from veilgraph.run.run import Run
from veilgraph.train import complete_config, train
from veilgraph.train.schedules import factor
from veilgraph.tune.search import tune


def quick(graph: Graph, folder: Path, **settings: object) -> Run:
    return train(graph, out=folder, **{"dimension": 16, "epochs": 4, "threads": 1, **settings})


def test_same_seed_same_vectors_other_seed_other_vectors(hospital: Graph, tmp_path: Path) -> None:
    runs = [quick(hospital, tmp_path / str(i), seed=s) for i, s in enumerate((5, 5, 6))]
    rows = [run.parameters.entities for run in runs]
    assert rows[0].equal(rows[1])
    assert not rows[0].equal(rows[2])


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "distmult", "candidates": "all", "loss": "softplus"},
        {"model": "complex", "candidates": "sampled", "negatives": 50, "reciprocal": False},
        {"model": "transe", "norm": 2, "loss": "margin", "optimiser": "sgd"},
        {"model": "transm", "reciprocal": True},
        {"model": "rescal", "optimiser": "row-adagrad"},
        {"model": "quate", "dropout": 0.2, "schedule": "cosine"},
        {"model": "rotate", "loss": "softplus", "schedule": "linear"},
        {"model": "pykeen:TransD"},
        {"model": "pykeen:ConvE", "dimension": 24},
    ],
    ids=str,
)
def test_combinations_lower_the_loss(settings: dict[str, object], hospital: Graph, tmp_path: Path) -> None:
    if str(settings["model"]).startswith("pykeen"):
        pytest.importorskip("pykeen")
    run = quick(hospital, tmp_path / "run", **{"epochs": 5, **settings})
    loss = [line["loss"] for line in run.trace]
    assert loss[-1] < loss[0]
    for key in ("sample_seconds", "gradient_seconds", "update_seconds", "seconds", "positives_per_second"):
        assert run.trace[0][key] >= 0


def test_early_stopping_keeps_the_best(hospital: Graph, tmp_path: Path) -> None:
    run = quick(
        hospital,
        tmp_path / "run",
        model="complex",
        epochs=200,
        validate_every=1,
        patience=2,
        regulariser_weight=0.0,
    )
    judged = [line["valid_mrr"] for line in run.trace]
    assert len(judged) < 200
    found = run.evaluate("valid", graph=hospital)
    assert found["mrr"] == pytest.approx(max(judged), abs=0.05)


def test_defaults_are_complete_and_explained(hospital: Graph) -> None:
    for model in ("complex", "transe", "rescal", "transh"):
        config, line = complete_config(hospital, {"model": model})
        assert all(
            v is not None
            for k, v in config.as_dict().items()
            if k not in (*PRIVACY, *ENCODER, *TEXT, "tuned_on")
        )
        assert model in line
        assert str(config.dimension) in line
        assert f"{len(hospital.entities):,} entities" in line


def test_what_the_user_says_wins(hospital: Graph) -> None:
    config, _ = complete_config(
        hospital, {"model": "transe", "optimiser": "adagrad", "dimension": 24, "margin": 3}
    )
    assert (config.optimiser, config.dimension, config.margin) == ("adagrad", 24, 3.0)


def test_run_folder_holds_what_it_should(hospital: Graph, tmp_path: Path) -> None:
    run = quick(hospital, tmp_path / "run")
    names = {path.name for path in run.folder.iterdir()}
    assert {
        "config.yaml",
        "ledger.jsonl",
        "trace.jsonl",
        "entities.safetensors",
        "relations.safetensors",
        "vocabulary.parquet",
        "certificate.json",
        "curator.json",
    } == names
    first, second = map(json.loads, (run.folder / "ledger.jsonl").read_text().splitlines())
    assert first["charge"]["event"] == "non-private"
    assert second["digest"] == run.config.digest
    assert (run.guarantee, run.epsilon) == ("none", None)
    assert "No privacy is promised" in run.certificate["statement"]
    with pytest.raises(UsageError, match="finished run"):
        quick(hospital, tmp_path / "run")


def test_answers_leave_known_facts_out_right_after_training(hospital: Graph, tmp_path: Path) -> None:
    run = quick(hospital, tmp_path / "run")
    h, r, t = hospital.train[0]
    answers = run.predict(hospital.entities[h], hospital.relations[r], top=len(hospital.entities))
    assert hospital.entities[t] not in {a["entity"] for a in answers}


def test_two_processes_cannot_train_one_run(hospital: Graph, tmp_path: Path) -> None:
    run = quick(hospital, tmp_path / "run")
    with run.locked(), pytest.raises(RunError, match="another process"), Run.open(run.folder).locked():
        pass


def test_unfinished_run_says_how_to_go_on(hospital: Graph, tmp_path: Path) -> None:
    run = quick(hospital, tmp_path / "run")
    (run.folder / "relations.safetensors").unlink()
    with pytest.raises(RunError, match="veil resume"):
        Run.open(run.folder).predict("patient/1", "takes")


def test_diverging_training_says_so(hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="diverged"):
        quick(hospital, tmp_path / "run", model="rescal", optimiser="sgd", learning_rate=1000.0, epochs=20)


def test_refusals(hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean dimension"):
        train(hospital, out=tmp_path / "a", dimensoin=3)
    with pytest.raises(ConfigError, match="candidates=all goes with"):
        quick(hospital, tmp_path / "b", model="transe", loss="margin", candidates="all")
    with pytest.raises(ConfigError, match="sampled negatives only"):
        quick(hospital, tmp_path / "c", model="transh", loss="softmax", candidates="all")
    with pytest.raises(InputError, match="no model is called"):
        quick(hospital, tmp_path / "d", model="complx")
    empty = random_graph().with_splits({"train": np.empty((0, 3))})
    with pytest.raises(InputError, match="no training statement"):
        quick(empty, tmp_path / "e")
    assert not list(tmp_path.glob("[abcde]")), "nothing is written for a request that is refused"


@pytest.mark.parametrize(
    ("schedule", "start", "end"),
    [("constant", 1, 1), ("plateau", 1, 1), ("linear", 1, 0.05), ("cosine", 1, 0.05)],
)
def test_schedules(schedule: str, start: float, end: float) -> None:
    assert factor(schedule, 0.0) == pytest.approx(start)
    assert factor(schedule, 1.0) == pytest.approx(end)


def test_tuning_goes_on_where_it_stopped(hospital: Graph, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    seen: list[int] = []
    options = {"model": "distmult", "dimension": 8, "epochs": 2, "threads": 1, "validate_every": 1}
    with pytest.raises(ConfigError):
        tune(hospital, out=tmp_path, trials=0, **options)
    tune(hospital, out=tmp_path, trials=2, report=lambda t: seen.append(t["trial"]), **options)
    result = tune(hospital, out=tmp_path, trials=3, report=lambda t: seen.append(t["trial"]), **options)
    assert (
        f"best of 3 trials on the {len(hospital.splits['valid'])} validation statements" in result["mrr_is"]
    )
    assert seen == [0, 1, 2]
    assert result["trials"] == 3
    assert 0 < result["mrr"] <= 1
    settings = TrainConfig.of(__import__("yaml").safe_load(Path(result["best"]).read_text()))
    assert settings.model == "distmult"
    with pytest.raises(InputError, match="validation split"):
        tune(hospital.with_splits({"train": hospital.train}), out=tmp_path / "b", trials=1, model="distmult")
