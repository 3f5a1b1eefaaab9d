"""What was paid for is paid for once: a second process, or a copy, does not go on with what another one has finished."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.ledgers import rewrite
from veilgraph.account.ledger import Ledger
from veilgraph.classify import classify, folder, private_steps
from veilgraph.cli import main
from veilgraph.errors import PrivacyError, RunError
from veilgraph.files import write_json, write_tensors
from veilgraph.load import Graph, save
from veilgraph.mark import mark
from veilgraph.run import open_run
from veilgraph.run.facts import digest_of
from veilgraph.run.run import Run
from veilgraph.run.verify import verify
from veilgraph.train import begin, resume, train
from veilgraph.tune import trials
from veilgraph.tune.search import tune

STEPS: dict[str, Any] = {
    **{"model": "distmult", "dimension": 8, "epochs": 2, "threads": 1},
    **{"epsilon": 4.0, "private_steps": 10, "order": "interleaved", "prior": "none"},
}


@pytest.fixture
def graph(hospital: Graph, tmp_path: Path) -> Path:
    return save(hospital.with_marks(mark(hospital, relations=["has*", "takes"])), tmp_path / "graph")


# --- runs -----------------------------------------------------------------------------------------------------------
def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("who", ["resume", "train"])
def test_a_run_that_somebody_else_finished_is_not_trained_again(
    who: str, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process finishes in the moment before the lock is taken: its vectors and its charges stay as they are."""
    out, held, before = tmp_path / "run", Run.locked, dict[str, bytes]()
    if who == "resume":
        begin(graph, out=out, **STEPS)

    @contextmanager
    def late(self: Run) -> Iterator[None]:
        monkeypatch.setattr(Run, "locked", held)
        resume(out)
        before.update(content(out))
        with held(self):
            yield

    monkeypatch.setattr(Run, "locked", late)
    with pytest.raises(RunError, match="finished already"):
        resume(out) if who == "resume" else train(graph, out=out, **STEPS)
    assert before == content(out)
    assert open_run(out).epsilon is not None


def test_nothing_is_looked_at_before_a_run_is_held(graph: Path, tmp_path: Path) -> None:
    begin(graph, out=tmp_path / "run", **STEPS)
    run = open_run(tmp_path / "run")
    with run.locked(), pytest.raises(RunError, match="another process"):
        resume(run.folder, graph=tmp_path / "no such graph")


# --- studies --------------------------------------------------------------------------------------------------------
class Stop(BaseException):
    """As if the process had been killed."""


def test_a_copy_of_a_study_does_not_go_on(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two winners of one study, each certified for what one of them spent: whoever sees both sees that they add up."""
    asked: dict[str, Any] = {
        **{"model": "distmult", "dimension": 8, "epochs": 2, "threads": 1},
        **{"epsilon": 2.0, "private_steps": 4, "trials": 2},
    }

    def killed(*_: Any) -> None:
        raise Stop

    monkeypatch.setattr(trials, "_trial", killed)  # its budget is charged
    with pytest.raises(Stop):
        tune(graph, out=tmp_path / "study", **asked)
    monkeypatch.undo()
    shutil.copytree(tmp_path / "study", tmp_path / "copy")
    shutil.copytree(tmp_path / "study", tmp_path / "stripped")
    first = open_run(tune(graph, out=tmp_path / "study", **asked)["run"])
    with pytest.raises(PrivacyError, match="--moved"):
        tune(graph, out=tmp_path / "copy", **asked)
    words = [f"--{key.replace('_', '-')}={value}" for key, value in asked.items()]
    assert main(["tune", str(graph), "--out", str(tmp_path / "copy"), *words, "--moved"]) == 0
    second = open_run(tmp_path / "copy" / "run")
    assert any(line.get("moved") for line in second.ledger.lines)
    assert first.certificate["training"] == second.certificate["training"]
    for run in (first, second):
        assert verify(run, graph)["valid"]
        assert not (run.folder.parent / "trial-0").exists()
    study = json.loads((tmp_path / "stripped" / "study.json").read_text())
    for keys in (["place"], ["place", "training"]):
        write_json(tmp_path / "stripped" / "study.json", {k: v for k, v in study.items() if k not in keys})
        with pytest.raises(RunError, match="damaged"):
            tune(graph, out=tmp_path / "stripped", **asked)


# --- classifications ------------------------------------------------------------------------------------------------
CLUBS: dict[str, Any] = {
    **{"guarantee": "label", "epsilon": 3.0, "names": ["club0", "club1"], "share": 0.5},
    **{"steps": 60, "hops": 4, "threads": 1},
}


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """60 people who know each other, and their two clubs."""
    people = range(60)
    (tmp_path / "town.tsv").write_text(
        "".join(f"p{i}\tin\thouse{i % 2}\np{i}\tknows\tp{(i * 7 + 2) % 60}\n" for i in people)
    )
    (tmp_path / "labels.tsv").write_text("".join(f"p{i}\tclub{i % 2}\n" for i in people))
    return tmp_path / "town.tsv"


def test_a_copy_of_a_classification_does_not_go_on(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, out, copy = tmp_path / "labels.tsv", tmp_path / "out", tmp_path / "copy"

    def stop(*given: Any) -> None:
        write_tensors(*given)
        raise Stop

    monkeypatch.setattr(private_steps, "write_tensors", stop)
    with pytest.raises(Stop):
        classify(town, labels, out=out, **CLUBS)
    monkeypatch.undo()
    shutil.copytree(out, copy)
    classify(town, labels, out=out, **CLUBS)
    with pytest.raises(PrivacyError, match="--moved"):
        classify(town, labels, out=copy, **CLUBS)
    classify(town, labels, out=copy, moved=True, **CLUBS)
    first, second = folder.read_certificate(out), folder.read_certificate(copy)
    assert first["training"] == second["training"]
    assert first["training"] in second["statement"]
    assert any(line.get("moved") for line in second["events"])
    assert folder.verify(out)["valid"]
    assert folder.verify(copy)["valid"]
    (copy / "curator" / "place.json").unlink()
    with pytest.raises(RunError, match="cannot be told"):
        classify(town, labels, out=copy, **CLUBS)


def test_a_classification_is_held_by_one_process(town: Path, tmp_path: Path) -> None:
    with folder.held(tmp_path / "out"), pytest.raises(RunError, match="another veil classify"):
        classify(town, tmp_path / "labels.tsv", out=tmp_path / "out", **CLUBS)


def test_a_classification_of_an_earlier_version_verifies_and_goes_on(town: Path, tmp_path: Path) -> None:
    """It names no training, and knows no place."""
    out, labels = tmp_path / "out", tmp_path / "labels.tsv"
    classify(town, labels, out=out, **CLUBS)
    about = json.loads((out / "classification.json").read_text())
    del about["training"]
    write_json(out / "classification.json", about)
    lines = Ledger(out / "ledger.jsonl").lines
    rewrite(
        out / "ledger.jsonl",
        [{**line, **({"facts": digest_of(about)} if "facts" in line else {})} for line in lines],
    )
    (out / "curator" / "place.json").unlink()
    (out / "curator" / "state.safetensors").unlink()
    write_json(out / "certificate.json", folder._build(out))
    assert "training" not in folder.read_certificate(out)
    assert folder.verify(out)["valid"]
    shutil.copytree(out, tmp_path / "elsewhere")
    classify(town, labels, out=tmp_path / "elsewhere", **CLUBS)
    assert folder.verify(tmp_path / "elsewhere")["valid"]
