"""Killed at any moment, a run continues and ends bit-identical to one that was never stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from veilgraph.errors import RunError
from veilgraph.load import Graph, save
from veilgraph.run.run import Run
from veilgraph.train import resume, train
from veilgraph.train.loop import Progress


class Stop(Exception):
    """Raised in the middle of a training."""


@pytest.mark.parametrize(
    "settings", [{"model": "complex"}, {"model": "rotate"}, {"model": "transh"}], ids=str
)
def test_interrupted_run_ends_bit_identical(
    settings: dict[str, str], hospital: Graph, tmp_path: Path
) -> None:
    options = {
        **settings,
        "dimension": 16,
        "epochs": 6,
        "validate_every": 2,
        "threads": 1,
        "seed": 3,
        "dropout": 0.1,
    }
    whole = train(hospital, out=tmp_path / "whole", **options)

    def stop_at(progress: Progress) -> None:
        if progress.epoch == 4 and progress.step >= progress.steps // 2:
            raise Stop

    with pytest.raises(Stop):
        train(hospital, out=tmp_path / "cut", listener=stop_at, checkpoint_seconds=0, **options)
    assert not Run.open(tmp_path / "cut").finished
    again = resume(tmp_path / "cut", graph=hospital)
    assert torch.equal(whole.parameters.entities, again.parameters.entities)
    assert torch.equal(whole.parameters.relations, again.parameters.relations)
    assert [line["loss"] for line in whole.trace] == [line["loss"] for line in again.trace]
    assert not (again.folder / "checkpoint.safetensors").exists()
    with pytest.raises(RunError, match="finished already"):
        resume(tmp_path / "cut", graph=hospital)


def test_kill_nine_at_random_moments(hospital: Graph, tmp_path: Path) -> None:
    save(hospital, tmp_path / "graph")
    command = [sys.executable, "-m", "veilgraph.cli"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    flags = [
        "--model",
        "distmult",
        "--dimension",
        "16",
        "--epochs",
        "25",
        "--validate-every",
        "5",
        "--seed",
        "1",
        "--checkpoint-seconds",
        "0",
    ]
    subprocess.run(
        [*command, "train", str(tmp_path / "graph"), "--out", str(tmp_path / "whole"), *flags],
        check=True,
        env=environment,
    )
    cut = tmp_path / "cut"
    process = subprocess.Popen(
        [*command, "train", str(tmp_path / "graph"), "--out", str(cut), *flags], env=environment
    )
    for pause in (0.4, 0.9, 0.2):
        deadline = time.monotonic() + 60
        while not (cut / "trace.jsonl").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if Run.open(cut).finished:
            break
        process = subprocess.Popen(
            [*command, "resume", str(cut), "--checkpoint-seconds", "0"], env=environment
        )
    assert process.wait() in (0, -signal.SIGKILL)
    if not Run.open(cut).finished:
        subprocess.run(
            [*command, "resume", str(cut), "--checkpoint-seconds", "0"], check=True, env=environment
        )
    whole, again = Run.open(tmp_path / "whole"), Run.open(cut)
    assert torch.equal(whole.parameters.entities, again.parameters.entities)
    assert torch.equal(whole.parameters.relations, again.parameters.relations)
    assert [line["epoch"] for line in again.trace] == list(range(1, 26))
