"""What was paid for is paid for once: a second process, or a copy, does not go on with what another one has finished."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from veilgraph.errors import RunError
from veilgraph.load import Graph, save
from veilgraph.mark import mark
from veilgraph.run import open_run
from veilgraph.run.run import Run
from veilgraph.train import begin, resume, train

STEPS: dict[str, Any] = {
    **{"model": "distmult", "dimension": 8, "epochs": 2, "threads": 1},
    **{"epsilon": 4.0, "private_steps": 10, "order": "interleaved", "prior": "none"},
}


@pytest.fixture
def graph(hospital: Graph, tmp_path: Path) -> Path:
    return save(hospital.with_marks(mark(hospital, relations=["has*", "takes"])), tmp_path / "graph")


# --- runs -----------------------------------------------------------------------------------------------------------
def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("who", ["resume", "train"])
def test_a_run_that_somebody_else_finished_is_not_trained_again(
    who: str, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process finishes in the moment before the lock is taken: its vectors and its charges stay as they are."""
    out, held, before = tmp_path / "run", Run.locked, dict[str, bytes]()
    if who == "resume":
        begin(graph, out=out, **STEPS)

    @contextmanager
    def late(self: Run) -> Iterator[None]:
        monkeypatch.setattr(Run, "locked", held)
        resume(out)
        before.update(content(out))
        with held(self):
            yield

    monkeypatch.setattr(Run, "locked", late)
    with pytest.raises(RunError, match="finished already"):
        resume(out) if who == "resume" else train(graph, out=out, **STEPS)
    assert before == content(out)
    assert open_run(out).epsilon is not None


def test_nothing_is_looked_at_before_a_run_is_held(graph: Path, tmp_path: Path) -> None:
    begin(graph, out=tmp_path / "run", **STEPS)
    run = open_run(tmp_path / "run")
    with run.locked(), pytest.raises(RunError, match="another process"):
        resume(run.folder, graph=tmp_path / "no such graph")
