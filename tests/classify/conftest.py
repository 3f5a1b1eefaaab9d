"""A town of three clubs, and what is to be learnt there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veilgraph.classify import folds_of
from veilgraph.classify.guarantees import Task
from veilgraph.load import Graph, load, save
from veilgraph.load.folds import truth_of
from veilgraph.load.labels import Labels
from veilgraph.mark import mark


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 people of three clubs: what they hold is confidential, which club a card is of is not."""
    path, rng = tmp_path_factory.mktemp("town"), np.random.default_rng(0)
    lines = [f"card{c}{i}\tof\tclub{c}\n" for c in range(3) for i in range(8)]
    lines += [f"card{c}{i}\tlike\tcard{c}{(i + 1) % 8}\n" for c in range(3) for i in range(8)]
    for person in range(300):
        lines += [f"p{person}\tholds\tcard{person % 3}{i}\n" for i in rng.choice(8, 5, replace=False)]
    (path / "all.tsv").write_text("".join(lines))
    graph = load(path / "all.tsv")
    save(graph.with_marks(mark(graph, relations=["holds"])), path / "graph")
    (path / "graph" / "labels.tsv").write_text("".join(f"p{i}\tclub{i % 3}\n" for i in range(300)))
    return path / "graph"


def task_of(graph: Graph, labels: Labels, seed: int = 0) -> Task:
    nodes = len(graph.entities)
    folds = folds_of(labels, nodes, 0.5, seed)
    return Task(
        graph.train,
        graph.secret("train"),
        nodes,
        len(graph.relations),
        labels,
        folds,
        truth_of(labels, nodes),
    )


@pytest.fixture(scope="module")
def task(town: Path) -> Task:
    from veilgraph.load.labels import read_labels

    graph = load(town)
    return task_of(graph, read_labels(graph))
