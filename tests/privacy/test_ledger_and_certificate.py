"""Section 4 of the contract: what is charged, when, and that it cannot be edited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.privacy import QUICK, private_run
from veilgraph.certify import verify
from veilgraph.load import Graph
from veilgraph.mark import mark
from veilgraph.runs import Run


def test_seed_does_not_fix_noise_or_private_batches(hospital: Graph, tmp_path: Path) -> None:
    runs = [private_run(hospital, tmp_path / name) for name in ("one", "two")]
    assert not torch.equal(runs[0].parameters.entities, runs[1].parameters.entities)


def test_insecure_noise_seed_costs_the_guarantee(hospital: Graph, tmp_path: Path) -> None:
    runs = [private_run(hospital, tmp_path / name, insecure_noise_seed=3) for name in ("one", "two")]
    assert torch.equal(runs[0].parameters.entities, runs[1].parameters.entities)
    assert (runs[0].guarantee, runs[0].epsilon) == ("none", None)


def test_charges_come_before_noise(hospital: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every private step the ledger on disk already pays for it."""
    from veilgraph.account.ledger import Ledger
    from veilgraph.train.private.plan import PrivatePlan

    taken = 0
    real = PrivatePlan._private

    def spy(self: PrivatePlan, *given: object) -> float:
        nonlocal taken
        taken += 1
        paid = sum(e["times"] for e in Ledger(self.ledger.path).events if e["event"] == "repeated")
        assert paid >= taken
        return real(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(PrivatePlan, "_private", spy)
    private_run(hospital, tmp_path / "run")
    assert taken == QUICK["private_steps"]


def test_training_stops_before_the_budget_is_exceeded(hospital: Graph, tmp_path: Path) -> None:
    """With noise fixed by hand and too many steps wanted, steps are left out, not overspent."""
    run = private_run(hospital, tmp_path / "run", noise_multiplier=4.0, epsilon=3.0, private_steps=40)
    assert run.epsilon is not None
    assert run.epsilon <= 3.0
    taken = sum(e["times"] for e in run.ledger.events if e["event"] == "repeated")
    assert 0 < taken < 40


@pytest.mark.parametrize(
    "name",
    [
        "ledger.jsonl",
        "certificate.json",
        "entities.safetensors",
        "relations.safetensors",
        "config.yaml",
        "vocabulary.parquet",
    ],
)
def test_any_edit_fails_verification(name: str, hospital: Graph, tmp_path: Path) -> None:
    marked = hospital.with_marks(mark(hospital, everything=True))
    run = private_run(marked, tmp_path / "run")
    assert verify(run, marked)["valid"]
    path = run.folder / name
    data = bytearray(path.read_bytes())
    if name.endswith((".jsonl", ".json", ".yaml")):
        text = data.decode()
        edited = text.replace("100.0", "200.0") if "jsonl" in name else text.replace("2", "3", 1)
        assert edited != text
        path.write_text(edited, encoding="utf-8")
    else:
        data[-5] ^= 1
        path.write_bytes(data)
    assert not verify(Run.open(run.folder), marked)["valid"]


def test_edited_marks_fail_verification(hospital: Graph, tmp_path: Path) -> None:
    marked = hospital.with_marks(mark(hospital, relations=["has*"]))
    run = private_run(marked, tmp_path / "run")
    assert verify(run, marked)["valid"]
    fewer = hospital.with_marks(mark(hospital, relations=["hasDiagnosis"]))
    assert "marks" in " ".join(verify(run, fewer)["reasons"])


def test_forged_epsilon_with_a_fresh_seal_fails(hospital: Graph, tmp_path: Path) -> None:
    from veilgraph.account.certificate import seal

    run = private_run(hospital, tmp_path / "run")
    document = run.certificate
    document["epsilon"] = 0.1
    document["seal"] = seal(document)
    (run.folder / "certificate.json").write_text(json.dumps(document), encoding="utf-8")
    assert any(
        reason.startswith("epsilon")
        for reason in verify(run, hospital.with_marks(mark(hospital, everything=True)))["reasons"]
    )
