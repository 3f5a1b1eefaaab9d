"""One training of an experiment, in a process of its own: what it takes is a JSON file, what comes of it another.

``python -m veilgraph_experiments.job FOLDER`` reads FOLDER/job.json, trains into FOLDER/run (or goes on with it) and
writes FOLDER/result.json. A job that was killed is continued by the next one on the same folder.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veilgraph.load import Graph
    from veilgraph.run.run import Run

JOB, RESULT, RUN = "job.json", "result.json", "run"


@dataclass(frozen=True)
class Job:
    """What to train on, what is confidential, how, and what to measure afterwards."""

    graph: str  # a saved graph folder
    settings: (
        Mapping[str, Any] | None
    )  # of the training; None: nothing is trained, the measures work on the graph
    marks: Mapping[str, Any] | None = None  # rules, as in marks.yaml
    measures: tuple[str, ...] = ("link",)
    leave_out: int | None = None  # one confidential training statement, by its place: a neighbouring graph
    more: Mapping[str, Any] = field(default_factory=dict)  # for the measures

    @property
    def digest(self) -> str:
        """A name for the job's folder: equal jobs are done once."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def perform(folder: Path) -> dict[str, Any]:
    """Do the job of a folder, or what is left of it."""
    from veilgraph.files import write_json
    from veilgraph.load import load
    from veilgraph.mark import mark_by_rules
    from veilgraph_experiments.measures import MEASURES

    document = json.loads((folder / JOB).read_text(encoding="utf-8"))
    job = Job(**{**document, "measures": tuple(document["measures"])})
    graph = load(job.graph)
    if job.marks is not None:
        graph = graph.with_marks(mark_by_rules(graph, job.marks, absent=True))
    if job.leave_out is not None:
        import numpy as np

        place = np.flatnonzero(graph.secret("train"))[job.leave_out]
        graph = graph.with_splits({**graph.splits, "train": np.delete(graph.train, place, 0)})
    run = _train(folder / RUN, graph, job.settings) if job.settings is not None else None
    result = _facts(run) if run is not None else {}
    for name in job.measures:
        result |= MEASURES[name](run, graph, {**job.more, "folder": str(folder)})
    write_json(folder / RESULT, result)
    return result


def _train(path: Path, graph: Graph, settings: Mapping[str, Any]) -> Run:
    """The run of a job, trained, gone on with, or found finished."""
    from veilgraph.run.run import Run
    from veilgraph.train import resume, train

    if (path / "config.yaml").is_file():
        run = Run.open(path)
        return run if run.finished else resume(path, graph=graph)
    return train(graph, out=path, threads=1, **settings)


def _facts(run: Run) -> dict[str, Any]:
    return {
        "epsilon": run.epsilon,
        "guarantee": run.guarantee,
        "delta": run.config.delta,
        "noise_multiplier": run.config.noise_multiplier,
        "clip_norm": run.clip_norm,
        "seconds": sum(line["seconds"] for line in run.trace),
    }


if __name__ == "__main__":
    perform(Path(sys.argv[1]))
