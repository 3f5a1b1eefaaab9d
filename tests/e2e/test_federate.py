"""A federation between processes: a server and three clients over TLS on loopback, each with its key, by the commands."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr")

from veilgraph.federate.divide import divide
from veilgraph.federate.network import _flwr
from veilgraph.load import Graph, save
from veilgraph.run.run import Run
from veilgraph.run.verify import verify

VEIL = [sys.executable, "-m", "veilgraph.cli", "federate"]


@contextmanager
def running(*words: object) -> Iterator[dict[str, Any]]:
    """A command that stays; what it said when it was ready."""
    process = subprocess.Popen(
        [*VEIL, *map(str, words), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield json.loads(line)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


EVIL = """
from pathlib import Path
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
Path({marker!r}).write_text("was here")
app = ServerApp()
client = ClientApp()
"""


def _code_of_strangers_is_not_run(server: Path, tmp_path: Path) -> None:
    """Whoever reaches the server can submit a run; what runs then, on server and clients, is our own app."""
    evil, marker, over = tmp_path / "evil", tmp_path / "marker", server / "server" / "over.json"
    (evil / "evil").mkdir(parents=True)
    (evil / "evil" / "__init__.py").write_text(EVIL.format(marker=str(marker)))
    text = (server / "app" / "pyproject.toml").read_text()
    text = text.replace("veilgraph.federate.server_app:app", "evil:app")
    text = text.replace("veilgraph.federate.client_app:app", "evil:client")
    (evil / "pyproject.toml").write_text(text.replace("veilgraph-federation", "evil"))
    over.unlink()
    assert _flwr(["run", str(evil), "veil", "--format", "json"], server / "home")["run-id"]
    ends = time.monotonic() + 150
    while not over.exists() and time.monotonic() < ends:
        time.sleep(0.5)
    assert over.exists()
    assert not marker.exists()


@pytest.mark.slow  # two minutes: Flower starts a process for every message
def test_a_server_and_three_clients(hospital: Graph, tmp_path: Path) -> None:
    names = [f"client{i}" for i in range(3)]
    for name, graph in divide(hospital, 3).items():
        save(graph, tmp_path / "graphs" / name)
        subprocess.run([*VEIL, "key", str(tmp_path / f"{name}.key")], check=True, timeout=60)
    subprocess.run([*VEIL, "secret", str(tmp_path / "secret")], check=True, timeout=60)
    server = tmp_path / "server"
    keys = [word for name in names for word in ("--client", tmp_path / f"{name}.key.pub")]
    with ExitStack() as stack:
        facts = stack.enter_context(running("serve", server, *keys, "--port", free_port()))
        for name in names:
            own = ["--epsilon", "4", "--mechanism", "lazy"] if name == "client0" else []
            words = ["--name", name, "--graph", tmp_path / "graphs" / name, "--key", tmp_path / f"{name}.key"]
            words += ["--ca", facts["certificate"], "--secret", tmp_path / "secret"]
            stack.enter_context(
                running("join", facts["address"], "--out", tmp_path / "runs" / name, *words, *own)
            )
        terms = ["--rounds", "2", "--local-epochs", "1", "--validate-rounds", "0", "--clients", "3"]
        terms += ["--model", "distmult", "--dimension", "16", "--candidates", "sampled"]
        done = subprocess.run(
            [*VEIL, "run", "--server", str(server), *terms, "--json"],
            capture_output=True,
            text=True,
            timeout=400,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        logs = "".join(path.read_text(errors="replace")[-3000:] for path in tmp_path.rglob("*.log"))
        assert done.returncode == 0, done.stderr + logs
        _code_of_strangers_is_not_run(server, tmp_path)
    found = json.loads(done.stdout)
    assert found["rounds"] == 2
    assert set(found["clients"]) == set(names)
    assert set(found["clients"]["client0"]) == {"status"}  # what a private client measured stays with it
    assert 0 < found["clients"]["client1"]["mrr.shared"] <= 1
    runs = [Run.open(tmp_path / "runs" / name) for name in names]
    assert all(verify(run)["valid"] for run in runs)
    assert [run.guarantee for run in runs] == ["dp", "none", "none"]
    both = sorted(set(runs[1].entities) & set(runs[2].entities))
    rows = [run.parameters.entities.numpy()[run.entities.ids(both)] for run in runs[1:]]
    assert np.array_equal(*rows)
    kept = b"".join(path.read_bytes() for path in server.rglob("*") if path.is_file())
    assert not any(name.encode() in kept for run in runs for name in run.entities)
