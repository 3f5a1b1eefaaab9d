"""What a step costs as the graph grows: 15 thousand entities against 1 million, same batch; then one epoch of a big graph.

The epoch (10 million statements, 1 million entities, dimension 64) runs in a process of its own, whose peak memory is
reported. Statements are random: only cost is measured here, quality is in quality.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from common import arguments, finish, median, peak_memory, say, settings
from veilgraph import machine
from veilgraph.load import Graph, Vocabulary
from veilgraph.train import complete_config
from veilgraph.train.session import Session


def random_graph(entities: int, statements: int, relations: int = 200) -> Graph:
    """Statements drawn at random; heads uniform, tails uneven."""
    rng = np.random.default_rng(0)
    triples = np.empty((statements, 3), np.int32)
    triples[:, 0] = rng.integers(entities, size=statements)
    triples[:, 1] = rng.integers(relations, size=statements)
    triples[:, 2] = (rng.random(statements) ** 2 * entities).astype(np.int32)
    triples[:entities, 0] = np.arange(entities)[:statements]
    names = pa.array([f"entity/{i:07d}" for i in range(entities)], pa.large_string())
    return Graph(
        Vocabulary(names),
        Vocabulary([f"relation/{i:03d}" for i in range(relations)], "relation"),
        {"train": triples},
    )


class Stepper:
    """A training whose steps can be timed."""

    def __init__(self, name: str, graph: Graph, dimension: int, batch: int) -> None:
        config, _ = complete_config(
            graph,
            {
                "model": name,
                "dimension": dimension,
                "batch": batch,
                "candidates": "sampled",
                "averaging": 0,
                "negatives": 64,
                "chunk": 128,
                "learning_rate": 1.0,
            },
        )
        session = Session.open(graph, config)
        self.config, self.model = config, session.model
        self.plan, self.state = session.ordinary_plan(), session.state
        self.batches = list(_take(self.plan.batches(0), 60))

    def time(self) -> float:
        """Seconds per step."""
        with torch.no_grad():
            began = time.perf_counter()
            for batch in self.batches:
                self.plan.step(self.state.parameters, self.state.optimisers, batch, 1e-4)
            return (time.perf_counter() - began) / len(self.batches)


def _take(items: Any, count: int) -> Any:
    for _, item in zip(range(count), items):
        yield item


def epoch(entities: int, statements: int, dimension: int, model: str) -> dict[str, Any]:
    """One epoch of a big graph in this process; seconds and peak memory."""
    machine.prepare()
    graph = random_graph(entities, statements)
    config, _ = complete_config(
        graph,
        {"model": model, "dimension": dimension, "batch": 4096, "candidates": "sampled", "negatives": 64, "chunk": 512,
         "optimiser": "row-adagrad", "averaging": 0, "learning_rate": 1.0},
    )  # fmt: skip
    session = Session.open(graph, config)
    plan, state = session.ordinary_plan(), session.state
    began = time.perf_counter()
    with torch.no_grad():
        losses = [plan.step(state.parameters, state.optimisers, b, 0.1) for b in plan.batches(0)]
    seconds = time.perf_counter() - began
    return {
        "model": model,
        "entities": entities,
        "statements": statements,
        "dimension": dimension,
        "seconds": seconds,
        "positives_per_second": statements / seconds,
        "peak_gigabytes": peak_memory() / 1e9,
        "loss_first": float(np.mean(losses[:100])),
        "loss_last": float(np.mean(losses[-100:])),
    }


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure and print."""
    parser = arguments(
        __doc__, small=15_000, large=1_000_000, dimension=128, batch=1024, repeats=5, statements=10_000_000
    )
    parser.add_argument("--models", default="transe,distmult,complex,rotate")
    parser.add_argument("--epoch-only", action="store_true", help=argparse_hidden)
    o = parser.parse_args(argv)
    if o.epoch_only:
        return finish(epoch(o.large, o.statements, 64, "complex"))
    facts = settings(small=o.small, large=o.large, dimension=o.dimension, batch=o.batch)
    small_graph, large_graph = random_graph(o.small, 300_000), random_graph(o.large, 2_000_000)
    ours, ratios = {}, {}
    for name in o.models.split(","):
        small, large = (Stepper(name, g, o.dimension, o.batch) for g in (small_graph, large_graph))
        small.time(), large.time()
        pairs = [(small.time(), large.time()) for _ in range(o.repeats)]
        times = [median([p[i] for p in pairs]) * 1e3 for i in (0, 1)]
        ours[name] = {"small_ms": times[0], "large_ms": times[1]}
        ratios[name] = times[1] / times[0]
        say(
            f"{name}: {times[0]:.2f} ms at {o.small:,} entities, {times[1]:.2f} ms at {o.large:,} ({ratios[name]:.2f} ×)"
        )
        del small, large
    child = subprocess.run(
        [
            sys.executable,
            __file__,
            "--epoch-only",
            "--large",
            str(o.large),
            "--statements",
            str(o.statements),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return finish(
        {
            "ours": ours,
            "peers": {},
            "ratio": max(ratios.values()),
            "ratios": ratios,
            "epoch": json.loads(child.stdout),
            "settings": facts,
        }
    )


argparse_hidden = "run only the big epoch and report its memory"

if __name__ == "__main__":
    main(sys.argv[1:])
