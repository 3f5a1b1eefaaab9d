"""A share of what ``make fuzz`` and ``make crash`` do, and everything they ever found."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fuzz.__main__ import CORPUS
from tests.fuzz.targets import Place, lay_out, targets
from veilgraph.errors import VeilError


def ran(*words: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def test_fuzz() -> None:
    assert "'inputs': 400" in ran("tests.fuzz", "--inputs", "400", "--seed", "77")


def test_flips() -> None:
    assert "'flips': 110" in ran("tests.fuzz.flips", "--flips", "110", "--seed", "77")


def test_crash() -> None:
    ran("tests.crash", "--points", "24", "--graph-kills", "20")


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.glob("*.json")))
def test_what_was_found_before(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = json.loads((CORPUS / name).read_text())
    place = Place(tmp_path_factory.getbasetemp() / "fuzz-place")
    target = next(one for one in targets(place) if one.name == found["target"])
    lay_out(target, found["file"], base64.b64decode(found["data"]), tmp_path / "input")
    with suppress(VeilError):
        target.read(tmp_path / "input", found["file"])
