"""The ledger: append-only, on disk first, and damaged only loudly."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from veilgraph.account import ledger as ledger_module
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


def test_a_charge_of_another_writer_is_never_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a ledger and the writing there is no moment for another charge."""
    path = tmp_path / "ledger.jsonl"
    one, other = Ledger(path), Ledger(path)
    real, turn = ledger_module.append_bytes, [other]

    def late(*given: Any, **more: Any) -> None:
        if turn:
            turn.pop().charge(gaussian(2.0), "of the other")
        real(*given, **more)

    monkeypatch.setattr(ledger_module, "append_bytes", late)
    with pytest.raises(VerificationError, match="somebody else"):
        one.charge(gaussian(3.0), "one")
    assert [line["what"] for line in Ledger(path).lines] == ["of the other"]
    path.write_bytes(b"")
    with pytest.raises(
        VerificationError, match="somebody else"
    ):  # cut back: nothing is written into the middle of it
        other.charge(gaussian(3.0), "two")
    assert path.read_bytes() == b""


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(path).charge(gaussian(2.0), "one")
    writer = threading.Thread(target=lambda: Ledger(path).charge(gaussian(3.0), "two"))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        assert len(Ledger(path).lines) == 1
    writer.join(10)
    assert len(Ledger(path).lines) == 2
