"""Certificates of earlier versions stay verifiable: what was written then is rebuilt by the rules of then.

``old_runs/version_1`` is a finished private run of a made-up graph of 24 patients, as the program wrote it at 887249c; ``select`` is one
whose mechanism has another (smaller) price today, as it was written at f82b866.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from veilgraph.account import certificate
from veilgraph.files import as_json
from veilgraph.run.run import Run, open_run
from veilgraph.run.verify import verify

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
