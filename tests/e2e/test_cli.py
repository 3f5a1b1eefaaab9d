"""The commands as a user types them: JSON keys, exit codes, no tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from veilgraph.cli import VERBS


def veil(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "veilgraph.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def answer(*words: str, cwd: Path) -> Any:
    done = veil(*words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, "one object on stdout, nothing else"
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a saved graph and a finished run."""
    folder = tmp_path_factory.mktemp("cli")
    loaded = answer(
        "load", "builtin:hospital", "--patients", "120", "--split", "random", "--out", "g", cwd=folder
    )
    assert loaded["splits"].keys() == {"train", "valid", "test"}
    trained = answer(
        "train", "g", "--model", "complex", "--epochs", "8", "--dimension", "16", "--out", "run", cwd=folder
    )
    assert {
        "run",
        "model",
        "epochs",
        "steps",
        "seconds",
        "positives_per_second",
        "epsilon",
        "delta",
        "guarantee",
    } <= trained.keys()
    assert trained["epsilon"] is None
    assert trained["guarantee"] == "none"
    return folder


def test_evaluate(place: Path) -> None:
    found = answer("evaluate", "run", cwd=place)
    assert {
        "split",
        "mrr",
        "mr",
        "hits@1",
        "hits@3",
        "hits@10",
        "queries",
        "queries_per_second",
    } <= found.keys()
    assert 0 < found["mrr"] <= 1
    shown = veil("evaluate", "run", "--details", "--memory", "1M", cwd=place)
    assert "hasDiagnosis" in shown.stdout


def test_predict_both_sides(place: Path) -> None:
    found = answer("predict", "run", "patient/3", "takes", "--top", "2", cwd=place)
    assert [set(a) for a in found] == [{"entity", "score", "rank"}] * 2
    assert len(answer("predict", "run", "?", "takes", found[0]["entity"], "--top", "3", cwd=place)) == 3
    assert found[0]["entity"] in veil("predict", "run", "patient/3", "takes", cwd=place).stdout


def test_export_list_and_version(place: Path) -> None:
    assert "entities.parquet" in answer("export", "run", "--out", "out", cwd=place)["files"]
    for kind in ("models", "losses", "optimisers", "readers", "formats", "datasets", "settings"):
        assert answer("list", kind, cwd=place)["items"]
        assert veil("list", kind, cwd=place).returncode == 0
    assert veil("--version", cwd=place).stdout.startswith("veilgraph ")


def test_tune(place: Path) -> None:
    pytest.importorskip("optuna")
    found = answer(
        "tune",
        "g",
        "--model",
        "distmult",
        "--dimension",
        "8",
        "--epochs",
        "2",
        "--trials",
        "2",
        "--out",
        "study",
        cwd=place,
    )
    assert found["trials"] == 2
    done = veil("train", "g", "--config", "study/best.yaml", "--epochs", "1", "--out", "tuned", cwd=place)
    assert done.returncode == 0, done.stderr


def test_progress_and_explanation_go_to_stderr(place: Path) -> None:
    done = veil("train", "g", "--epochs", "2", "--out", "run3", "--json", cwd=place)
    assert "dimension" in done.stderr
    assert "left" in done.stderr
    json.loads(done.stdout)


def test_private_session_from_the_command_line(place: Path) -> None:
    """mark, train, certificate, verify, evaluate, audit, attack: the fields other work relies on, and exit codes."""
    veil("load", "builtin:hospital", "--patients", "60", "--split", "random", "--out", "pg", cwd=place)
    marked = answer("mark", "pg", "--relation", "has*", cwd=place)
    assert marked["confidential"] > 0
    settings = (
        "--model",
        "distmult",
        "--dimension",
        "8",
        "--epochs",
        "2",
        "--epsilon",
        "1.5",
        "--private-steps",
        "4",
    )
    trained = answer("train", "pg", *settings, "--out", "pr", cwd=place)
    assert trained["guarantee"] == "dp"
    assert trained["epsilon"] <= 1.5
    for key in ("delta", "mechanism", "unit", "noise_multiplier", "sample_rate", "clip_norm", "steps"):
        assert trained[key] is not None
    assert answer("certificate", "verify", "pr", cwd=place) | {"epsilon": 0} == {
        "valid": True, "epsilon": 0, "delta": 1e-6, "reasons": [],
    }  # fmt: skip
    found = answer("evaluate", "pr", cwd=place)
    assert found["confidential"]["queries"] + found["unrestricted"]["queries"] == found["queries"]
    audited = answer("audit", "pr", "--canaries", "40", cwd=place)
    assert audited["verdict"] == "consistent"
    attacked = answer("attack", "membership", "pr", "--count", "100", cwd=place)
    assert {"auc", "tpr@fpr=0.01", "members", "non_members"} <= attacked.keys()
    ledger = place / "pr" / "ledger.jsonl"
    ledger.write_text(ledger.read_text(encoding="utf-8").replace("100.0", "900.0"), encoding="utf-8")
    assert veil("certificate", "verify", "pr", "--json", cwd=place).returncode == 5
    caught = veil("audit", "pg", "--claim", "0.0", "--canaries", "40", *settings, cwd=place).returncode
    assert caught in (0, 5)
    assert veil("train", "pg", "--epsilon", "-1", "--out", "x", cwd=place).returncode in (2, 3)
    assert veil("audit", "pg", cwd=place).returncode == 3


def test_demo_ends_in_a_report(tmp_path: Path) -> None:
    found = answer("demo", "--patients", "150", "--epochs", "5", "--out", "demo", cwd=tmp_path)
    page = (tmp_path / found["report"]).read_text(encoding="utf-8")
    parts = (
        "What is promised",
        "In short",
        "What they are good for",
        "What an attacker learns",
        "Audit: 300 canaries",
        "<svg",
    )
    for part in parts:
        assert part in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert found["quality"]["complex, no privacy"]["mrr"] > found["quality"]["popular answers"]["mrr"]
    assert found["guarantee"] == "dp"
    assert found["epsilon"] <= 2.0
    assert found["audit"]["verdict"] == "consistent"
    assert "changes the probability" in found["certificate"]
    assert veil("demo", "--patients", "150", "--out", "demo", cwd=tmp_path).returncode == 2


BAD = [
    (["load", "missing.tsv"], 3, "no such file"),
    (["load", "."], 3, "directory"),
    (["load", "bad.tsv", "--out", "half"], 3, "line 2 of bad.tsv"),
    (["load", "http://127.0.0.1:9/x", "--timeout", "1"], 3, "cannot be reached"),
    (["load", "builtin:hospital", "--patients", "1"], 3, "between 10"),
    (["load", "builtin:hospital", "--out", "g"], 2, "exists already"),
    (["load", "bad.tsv", "--columns", "1,2"], 2, "three columns"),
    (["train", "g", "--out", "run"], 2, "finished run"),
    (["train", "g", "--out", "n", "--model", "complx"], 3, "Nearest: complex"),
    (["train", "g", "--out", "n", "--dimension", "zero"], 3, "whole number"),
    (["train", "g", "--out", "n", "--model", "complex", "--dimension", "7"], 3, "multiple of 2"),
    (["train", "g", "--dimensoin", "7"], 2, "unrecognized"),
    (["train", "nowhere", "--out", "n"], 3, "no such file"),
    (["train", "g", "--config", "bad.yaml", "--out", "n"], 3, "Did you mean"),
    (["resume", "run"], 3, "finished already"),
    (["resume", "g"], 3, "not a run folder"),
    (["evaluate", "nowhere"], 3, "not a run folder"),
    (["evaluate", "run", "--split", "tst"], 3, "There are"),
    (["evaluate", "run", "--memory", "much"], 2, "size such as"),
    (["evaluate", "run", "--graph", "bad.tsv"], 3, "line 2"),
    (["predict", "run", "patient/x", "takes"], 3, "Nearest"),
    (["predict", "run", "?", "takes"], 2, "one side"),
    (["export", "run", "--out", "g"], 2, "exists already"),
    (["frobnicate"], 2, "invalid choice"),
]


@pytest.mark.parametrize(
    ("words", "code", "message"), BAD, ids=lambda v: " ".join(v) if isinstance(v, list) else None
)
def test_bad_requests_end_well(words: list[str], code: int, message: str, place: Path) -> None:
    (place / "bad.tsv").write_bytes(b"a\tr\tb\nc\tr\n")
    (place / "bad.yaml").write_text("dimensions: 3\n")
    before = sorted(p.name for p in place.iterdir())
    done = veil(*words, cwd=place)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(p.name for p in place.iterdir()) == before, "nothing half-written"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, tmp_path: Path) -> None:
    done = veil(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "--json" in done.stdout
    assert VERBS[verb].split()[0] in done.stdout
