"""What an experiment is, and how one is conducted: trainings side by side, each with one thread, each done once."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from veilgraph.errors import ConfigError, InputError
from veilgraph.files import write_json, write_text
from veilgraph.load import Graph, load
from veilgraph.report.blocks import Grid
from veilgraph_experiments.data import prepare
from veilgraph_experiments.job import JOB, RESULT, Job

Row = dict[str, Any]
Results = Mapping[str, dict[str, Any]]


@dataclass(frozen=True)
class Scale:
    """How much is done: quick for a look, full as published."""

    quick: bool = False
    seeds: int = 5
    epochs: int | None = None  # as published, if not given

    def pick(self, quick: Any, full: Any) -> Any:
        """One of two."""
        return quick if self.quick else full

    def length(self, quick: int, full: int = 100) -> int:
        """Epochs of a training."""
        return self.epochs or (quick if self.quick else full)


class Experiment(ABC):
    """One published table or figure."""

    name: ClassVar[str]
    title: ClassVar[str]
    data: tuple[str, ...] = ()
    paper: Sequence[Row] = ()

    @abstractmethod
    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        """The trainings it takes, by a label of one's own."""

    @abstractmethod
    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        """The table."""

    def picture(self, rows: Sequence[Row]) -> str | None:
        """An SVG, if there is something to look at."""
        return None

    def pictures(self, rows: Sequence[Row]) -> dict[str, str]:
        """All of them, by name: most have one, called figure."""
        one = self.picture(rows)
        return {"figure": one} if one else {}


def conduct(
    experiment: Experiment,
    out: str | Path,
    *,
    quick: bool = False,
    seeds: int = 5,
    epochs: int | None = None,
    processes: int | None = None,
    tell: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Train what is missing, and write table.csv, table.md and figure.svg; returns name, rows, paper, where and seconds.

    Reads confidential data: the marked graphs, as the curator of benchmarks may. Releases: nothing; figures on them are
    for the curator.
    """
    if seeds < 1 or any(value is not None and value < 1 for value in (epochs, processes)):
        raise ConfigError("an experiment needs at least one seed, one epoch and one process.")
    began = time.perf_counter()
    scale, folder = Scale(quick, seeds, epochs), Path(out)
    target = folder / experiment.name
    graphs = {}
    for name in experiment.data:
        tell(f"{experiment.name}: graph {name}")
        graphs[name] = load(prepare(name, folder / "graphs"))
    jobs = experiment.jobs(graphs, scale)
    results = _perform(jobs, folder / "jobs", processes or max(1, os.cpu_count() or 1), tell)
    rows = experiment.rows(graphs, scale, results)
    target.mkdir(parents=True, exist_ok=True)
    write_text(target / "table.csv", as_csv(rows))
    write_text(target / "table.md", as_markdown(experiment, rows))
    for name, picture in experiment.pictures(rows).items():
        write_text(target / f"{name}.svg", picture)
    found = {
        "name": experiment.name,
        "rows": rows,
        "paper": list(experiment.paper),
        "quick": quick,
        "seeds": seeds,
        "epochs": epochs,
    }
    write_json(target / "result.json", found)
    return {
        **found,
        "out": str(target),
        "seconds": round(time.perf_counter() - began, 1),
        "trainings": len(jobs),
    }


def _perform(
    jobs: Mapping[str, Job], folder: Path, processes: int, tell: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """The results of all jobs; what is there already is not done again."""
    waiting = [job for job in {job.digest: job for job in jobs.values()}.values() if not _done(folder, job)]
    running: list[tuple[Job, subprocess.Popen[bytes]]] = []
    total, began = len(waiting), time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                job = waiting.pop(0)
                path = folder / job.digest
                path.mkdir(parents=True, exist_ok=True)
                write_json(path / JOB, asdict(job))
                with (path / "log.txt").open("wb") as log:
                    command = [sys.executable, "-m", "veilgraph_experiments.job", str(path)]
                    running.append((job, subprocess.Popen(command, stdout=log, stderr=log, env=environment)))
            time.sleep(0.2)
            for job, process in [(j, p) for j, p in running if p.poll() is not None]:
                running.remove((job, process))
                if process.returncode or not _done(folder, job):
                    said = (
                        (folder / job.digest / "log.txt")
                        .read_text(encoding="utf-8", errors="replace")
                        .strip()
                    )
                    raise InputError(
                        f"a training failed ({folder / job.digest}): {said.splitlines()[-1:] or ['no word']}"
                    )
                done = total - len(waiting) - len(running)
                left = (time.perf_counter() - began) / done * (total - done)
                tell(f"{done} of {total} trainings done, about {left / 60:.1f} min left")
    finally:
        for _, process in running:
            process.terminate()
        for _, process in running:
            process.wait()
    return {
        label: json.loads((folder / job.digest / RESULT).read_text(encoding="utf-8"))
        for label, job in jobs.items()
    }


def _done(folder: Path, job: Job) -> bool:
    return (folder / job.digest / RESULT).is_file()


def as_csv(rows: Sequence[Row]) -> str:
    """A table for spreadsheets."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_markdown(experiment: Experiment, rows: Sequence[Row]) -> str:
    """A table for reading, the paper's below."""
    parts = [f"# {experiment.title}\n", _grid(rows)]
    if experiment.paper:
        parts += ["\n## As published\n", _grid(experiment.paper)]
    return "\n".join(parts)


def _grid(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return Grid(columns, [[row.get(column) for column in columns] for row in rows]).as_markdown()
