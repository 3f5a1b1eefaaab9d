"""Certificates of earlier versions stay verifiable: what was written then is rebuilt by the rules of then.

``old_runs/version_1`` is a finished private run of a made-up graph of 24 patients, as the program wrote it at 887249c; ``select`` is one
whose mechanism has another (smaller) price today, as it was written at f82b866.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from veilgraph.account import certificate
from veilgraph.files import as_json
from veilgraph.load import Graph, Vocabulary
from veilgraph.mark import mark, summarise
from veilgraph.run.run import Run, open_run
from veilgraph.run.verify import _build, verify
from veilgraph.train import train

OLD = Path(__file__).parent / "old_runs"


@pytest.fixture
def old(tmp_path: Path) -> Run:
    return open_run(shutil.copytree(OLD / "version_1", tmp_path / "run"))


def test_an_old_certificate_is_verified_by_its_own_rules(old: Run) -> None:
    found = verify(old)
    assert found["valid"], found["reasons"]
    assert old.certificate["version"] == 1
    assert "attack_accuracy" not in old.certificate


def test_a_run_whose_steps_had_another_price_is_verified(tmp_path: Path) -> None:
    run = open_run(shutil.copytree(OLD / "select", tmp_path / "run"))
    assert verify(run)["valid"], verify(run)["reasons"]
    path = run.folder / "ledger.jsonl"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"rho": 0.0111', '"rho": 0.0101'), encoding="utf-8"
    )
    assert not verify(open_run(run.folder))["valid"]


@pytest.mark.parametrize(
    ("key", "value"), [("epsilon", 0.5), ("unit", "statement"), ("version", 2), ("version", 99)]
)
def test_an_old_certificate_cannot_be_edited(key: str, value: object, old: Run) -> None:
    """Not even to pass for one of another version, with a fresh seal."""
    document = {**old.certificate, key: value}
    document["seal"] = certificate.seal(document)
    (old.folder / "certificate.json").write_text(as_json(document), encoding="utf-8")
    found = verify(open_run(old.folder))
    assert not found["valid"]
    assert json.dumps(found["reasons"])


@pytest.mark.parametrize("unit", ["head", "group:hasAge"])
def test_a_certificate_says_whose_head_and_marking_counts_the_rest(unit: str, tmp_path: Path) -> None:
    """What is said about a patient in statements of others is no part of the patient's unit; version 3 still said «about»."""
    names = sorted([f"doctor/{i}" for i in range(6)] + ["old", "patient/0", "patient/1", "young"])
    entities, relations = Vocabulary(names), Vocabulary(["hasAge", "hasSeen", "treated"], "relation")
    said = [(f"doctor/{i}", "treated", f"patient/{i % 2}") for i in range(6)]
    said += [("patient/0", "hasSeen", "doctor/0"), ("patient/0", "hasSeen", "patient/0")]
    said += [("patient/0", "hasAge", "old"), ("patient/1", "hasAge", "young")]
    rows = np.array([(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in said], np.int32)
    graph = Graph(entities, relations, {"train": rows})
    marked = graph.with_marks(mark(graph, relations=["treated", "hasSeen"], unit=unit, per_unit=2))
    assert summarise(marked)["about_others"] == 4  # three that treated patient/0, who has seen one of them
    assert summarise(graph.with_marks(mark(graph, relations=["treated"])))["about_others"] == 0
    run = train(marked, out=tmp_path / "run", model="marginals", epsilon=1.0, threads=1)
    now = run.certificate["statement"]
    assert "as head are in the graph" in now
    assert run.certificate["version"] == certificate.VERSION == 4
    (run.folder / "certificate.json").write_text(as_json(_build(run, 3)), encoding="utf-8")
    before = open_run(run.folder)
    assert "as head" not in before.certificate["statement"]
    assert verify(before, marked)["valid"], verify(before, marked)["reasons"]
    edited = {**before.certificate, "statement": now}
    edited["seal"] = certificate.seal(edited)
    (run.folder / "certificate.json").write_text(as_json(edited), encoding="utf-8")
    assert not verify(open_run(run.folder), marked)["valid"]
