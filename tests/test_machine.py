"""Cores that may be used, threads that wait, and benchmarks that look for their peers first."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from veilgraph import machine
from veilgraph.cli import bench
from veilgraph.cli import main as veil


def test_quotas_of_control_groups_count(tmp_path: Path) -> None:
    """The smallest on the way up; in both versions; «max», -1 and what cannot be read are no limit."""
    own, root = tmp_path / "cgroup", tmp_path / "tree"
    (root / "outer" / "inner").mkdir(parents=True)
    own.write_text("0::/outer/inner\n")
    assert machine._quotas(root, own) == []
    (root / "outer" / "cpu.max").write_text("150000 100000\n")
    (root / "outer" / "inner" / "cpu.max").write_text("max 100000\n")
    assert machine._quotas(root, own) == [1.5]
    own.write_text("4:memory:/x\n3:cpu,cpuacct:/box\n")
    (root / "cpu" / "box").mkdir(parents=True)
    (root / "cpu" / "box" / "cpu.cfs_quota_us").write_text("50000\n")
    (root / "cpu" / "box" / "cpu.cfs_period_us").write_text("100000\n")
    assert machine._quotas(root, own) == [0.5]
    (root / "cpu" / "box" / "cpu.cfs_quota_us").write_text("-1\n")
    assert machine._quotas(root, own) == []
    assert machine._quotas(root, tmp_path / "nowhere") == []


def test_as_many_threads_as_a_quota_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_quotas", lambda: [0.5])
    assert machine.cores() == 1
    monkeypatch.setattr(machine, "_quotas", list)
    assert machine.cores() == len(os.sched_getaffinity(0))


def test_cores_that_others_use_are_left_to_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of four cores two are idle, one nearly and one not at all: three threads. Where nothing can be read, all."""
    ticks = machine.TICKS * machine.LOOK
    seen = iter([{0: 0, 1: 0, 2: 0, 3: 0}, {0: ticks, 1: ticks, 2: 0.9 * ticks, 3: 0}])
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setattr(machine, "_idle", lambda: next(seen))
    assert machine.free_cores.__wrapped__() == 3
    monkeypatch.setattr(machine, "_idle", dict)
    assert machine.free_cores.__wrapped__() == 4
    (tmp_path / "stat").write_text("cpu 1 2 3 4 5 6\ncpu0 1 2 3 40 2 6\nintr 5\n")
    monkeypatch.undo()
    assert machine._idle(tmp_path / "stat") == {0: 42}
    assert machine._idle(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(("before", "after"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_that_wait_sleep(before: str | None, after: str) -> None:
    """Said before a library with parallel loops is there; a wish that was there stays."""
    code = (
        "import sys, veilgraph, os; assert 'torch' not in sys.modules; print(os.environ['OMP_WAIT_POLICY'])"
    )
    given = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    given |= {} if before is None else {"OMP_WAIT_POLICY": before}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == after


@pytest.mark.parametrize("name", bench.PEERS)
def test_a_missing_peer_is_said_before_anything_is_measured(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *rest: None if n in bench.PEERS[name] else real(n, *rest)
    )
    assert veil(["bench", name]) == 3
    told = capsys.readouterr().err
    assert "veilgraph[bench]" in told.replace("\n", "")
    assert all(peer in told for peer in bench.PEERS[name])


def test_every_import_of_a_peer_is_known() -> None:
    """A script that imports a library nobody installs would fail after minutes."""
    folder = Path(__file__).parents[1] / "bench"
    for name in bench.SCRIPTS:
        text = (folder / f"{name}.py").read_text("utf-8")
        text += (folder / "peers.py").read_text("utf-8") if "from peers import" in text else ""
        for peer in ("pykeen", "opacus", "torch_geometric"):
            if f"from {peer}" in text or f"import {peer}" in text:
                assert peer in bench.PEERS[name]
