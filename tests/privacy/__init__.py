"""The privacy contract, rule by rule."""

from __future__ import annotations

from pathlib import Path

from veilgraph.load import Graph
from veilgraph.run.run import Run
from veilgraph.train import train

QUICK = {
    "dimension": 8,
    "epochs": 2,
    "private_steps": 6,
    "sample_rate": 0.5,
    "threads": 1,
    "seed": 0,
    "negatives": 8,
}


def private_run(graph: Graph, out: Path, **settings: object) -> Run:
    return train(graph, out=out, **{"model": "distmult", "epsilon": 2.0, **QUICK, **settings})
