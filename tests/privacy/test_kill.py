"""Killed at random moments, a private run never forgets what it spent, never reuses noise, and ends inside its budget."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from veilgraph.account.ledger import Ledger
from veilgraph.load import Graph, save
from veilgraph.mark import mark
from veilgraph.run.run import Run
from veilgraph.run.verify import verify

# The witness: after every private step that was taken, and for every draw of noise, a line in a file of its own.
WORKER = """
import os, sys
from pathlib import Path
from veilgraph.run.run import Run
from veilgraph.train import resume, train
from veilgraph.noise import gauss
from veilgraph.train.private import plan

out, graph, witness = Path(sys.argv[1]), sys.argv[2], os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
draw, take = gauss.FreshNoise.normal, plan.PrivatePlan.take

def normal(self, *shape):
    drawn = draw(self, *shape)
    if drawn.size:
        os.write(witness, b"noise %r\\n" % float(drawn.flat[0]))
    return drawn

def private(self, *given):
    os.write(witness, b"step\\n")
    return take(self, *given)

gauss.FreshNoise.normal, plan.PrivatePlan.take = normal, private
if (out / "config.yaml").exists():
    resume(out, checkpoint_seconds=0.05)
else:
    train(graph, out=out, model="distmult", dimension=8, epsilon=3.0, epochs=30, private_steps=3000, sample_rate=0.02,
          negatives=8, threads=1, checkpoint_seconds=0.05)
"""


def kill_and_resume(graph: Graph, folder: Path, kills: int) -> None:
    save(graph.with_marks(mark(graph, random_share=0.5)), folder / "graph")
    out, witness = folder / "run", folder / "witness"
    command = [sys.executable, "-c", WORKER, str(out), str(folder / "graph"), str(witness)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    chance = random.Random(0)
    for _ in range(kills):
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        before = witness.stat().st_size if witness.exists() else 0
        deadline = time.monotonic() + 60
        while (witness.stat().st_size if witness.exists() else 0) == before and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(chance.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (out / "ledger.jsonl").exists():
            paid = sum(e["times"] for e in Ledger(out / "ledger.jsonl").events if e["event"] == "repeated")
            assert paid >= witness.read_bytes().count(b"step\n"), "a step was taken that is not on the ledger"
        if (out / "relations.safetensors").exists():
            break
    if not (out / "relations.safetensors").exists():
        subprocess.run(command, env=environment, check=True, timeout=300, stderr=subprocess.DEVNULL)
    lines = witness.read_bytes().splitlines()
    noise = [line for line in lines if line.startswith(b"noise")]
    assert len(set(noise)) == len(noise), "noise was used twice"
    run = Run.open(out)
    paid = sum(e["times"] for e in run.ledger.events if e["event"] == "repeated")
    assert paid >= lines.count(b"step")
    assert run.epsilon is not None
    assert run.epsilon <= 3.0
    assert verify(run)["valid"]


def test_kill_nine_and_resume(hospital: Graph, tmp_path: Path) -> None:
    kill_and_resume(hospital, tmp_path, 3)


@pytest.mark.slow
def test_kill_nine_fifty_times(hospital: Graph, tmp_path: Path) -> None:
    kill_and_resume(hospital, tmp_path, 50)
