"""The ledger: append-only, on disk first, and damaged only loudly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from veilgraph.account.events import gaussian, non_private, repeated
from veilgraph.account.ledger import Ledger
from veilgraph.errors import VerificationError


def test_charges_are_synced_before_they_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    real = os.fsync

    def fsync(number: int) -> None:
        real(number)
        synced.append((tmp_path / "ledger.jsonl").read_bytes())

    monkeypatch.setattr(os, "fsync", fsync)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.charge(gaussian(2.0), "one")
    assert synced[-1] == ledger.path.read_bytes()
    ledger.charge(repeated(3, gaussian(4.0)), "two")
    assert synced[-1] == ledger.path.read_bytes()
    again = Ledger(ledger.path)
    assert again.events == ledger.events
    assert again.spent(1e-6) == ledger.spent(1e-6)
    assert again.digest == ledger.digest


def test_reading_changes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.charge(gaussian(2.0), "one")
    before = ledger.path.read_bytes()
    for _ in range(3):
        assert ledger.spent(1e-6) == Ledger(ledger.path).spent(1e-6)
    assert ledger.path.read_bytes() == before


def test_half_a_line_was_never_used_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(path).charge(gaussian(2.0), "one")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"what": "two", "charge": {"event": "gau')
    ledger = Ledger(path)
    assert len(ledger.events) == 1
    ledger.charge(gaussian(3.0), "two")
    assert path.read_bytes().startswith(whole + b'{"what": "two"')
    assert len(Ledger(path).events) == 2


def test_other_damage_is_an_error_not_a_smaller_epsilon(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for bad in (b"nonsense\n", b"[]\n", b'{"what": "x"}\n', b'{"charge": {"event": "free"}}\n'):
        path.write_bytes(bad)
        Ledger_line = b'{"what": "one", "charge": {"event": "gaussian", "noise_multiplier": 2.0}}\n'
        path.write_bytes(bad + Ledger_line)
        with pytest.raises(VerificationError):
            Ledger(path)


def test_non_private_is_remembered(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.charge(gaussian(2.0), "one")
    assert ledger.private
    ledger.charge(non_private("published without a proof"), "two")
    assert not Ledger(ledger.path).private
