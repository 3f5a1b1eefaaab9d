"""What privacy costs in time: lazy noise against our own ordinary SGD, PyKEEN without privacy, Opacus, and the growth curve.

FB15k-237, the same batch and negatives for all. ``ratio`` is lazy over ordinary SGD in positives per second, the worst of
the models. Opacus trains a DistMult with two embedding tables; ours is compared with the faster of its batches (at 1024
its per-example gradients would take 7.6 GB for one copy). Both sides draw their batches inside the measured time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common import alternate, arguments, benchmark, finish, median, peak_memory, say, settings
from growth import random_graph
from peers import Training
from veilgraph.account.events import nothing
from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.layout import LEDGER
from veilgraph.load import Graph
from veilgraph.mark import mark
from veilgraph.train import complete_config
from veilgraph.train.session import Session


def _settings(name: str, graph: Graph, o: Any, mechanism: str) -> TrainConfig:
    config, _ = complete_config(
        graph,
        {
            "model": name,
            "dimension": o.dimension,
            "batch": o.batch,
            "negatives": o.negatives // 2,
            "chunk": o.batch,
            "candidates": "sampled",
            "optimiser": "sgd",
            "regulariser": "none",
            "averaging": 0,
            "dropout": 0,
            "reciprocal": False,
            "learning_rate": 1.0,
        },
    )
    rate = o.batch / len(graph.train)
    return config.with_values(
        noise_multiplier=1.0,
        mechanism=mechanism,
        clip=1.0,
        sample_rate=rate,
        private_optimiser="sgd",
        private_learning_rate=0.1,
        private_steps=1_000_000,
        delta=1e-6,
        epochs=1,
    )


class Ordinary:
    """Our SGD without privacy."""

    def __init__(self, name: str, graph: Graph, o: Any) -> None:
        config = _settings(name, graph, o, "lazy")
        session = Session.open(graph, config.with_values(noise_multiplier=None))
        self.model, self.state, self.plan = session.model, session.state, session.ordinary_plan()
        self.size, self.count = o.batch, o.steps

    def time(self) -> float:
        """Seconds per statement, drawing batches and negatives included."""
        began = time.perf_counter()
        with torch.no_grad():
            for batch in _take(self.plan.batches(0), self.count):
                self.plan.step(self.state.parameters, self.state.optimisers, batch, 0.1)
        return (time.perf_counter() - began) / (self.size * self.count)


class Private:
    """Private steps, charged and noised as in a training."""

    def __init__(self, name: str, graph: Graph, o: Any, mechanism: str, folder: Path) -> None:
        graph = graph.with_marks(mark(graph, everything=True))
        config = _settings(name, graph, o, mechanism)
        own = folder / f"{name}-{mechanism}"
        own.mkdir()
        Ledger(own / LEDGER).charge(nothing(), "measured")
        session = Session.open(graph, config, own, float(len(graph.train)))
        self.model, self.state = session.model, session.state
        self.plan = session.private_plan()
        self.size, self.count = o.batch, o.steps

    def time(self) -> float:
        """Seconds per expected statement, drawing batches, noise, ledger and flush included."""
        began = time.perf_counter()
        with torch.no_grad():
            for step in _take(self.plan.batches(0), self.count):
                self.plan.step(self.state.parameters, self.state.optimisers, step, 0.1)
            if len(self.state.parameters.entities) < 100_000:
                self.plan.flush(self.state.parameters)
        return (time.perf_counter() - began) / (self.size * self.count)


def _take(items: Any, count: int) -> Any:
    for _, item in zip(range(count), items):
        yield item


def opacus(graph: Graph, dimension: int, batch: int, negatives: int, steps: int = 4) -> float:
    """Positives per second of DP-SGD on two embedding tables with per-example gradients."""
    from opacus import PrivacyEngine

    class DistMult(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.entities = torch.nn.Embedding(len(graph.entities), dimension)
            self.relations = torch.nn.Embedding(len(graph.relations), dimension)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            rows = self.entities(ids[:, [0, *range(2, ids.shape[1])]])
            query = rows[:, :1] * self.relations(ids[:, 1:2])
            return (query * rows[:, 1:]).sum(-1)

    rng = np.random.default_rng(0)
    statements = torch.from_numpy(graph.train[: batch * 64].astype(np.int64))
    data = torch.utils.data.TensorDataset(statements)
    loader = torch.utils.data.DataLoader(data, batch_size=batch)
    model = DistMult()
    engine = PrivacyEngine()
    model, optimiser, _ = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader,
        noise_multiplier=1.0, max_grad_norm=1.0,
    )  # fmt: skip
    times = []
    for _ in range(steps):
        part = statements[torch.from_numpy(rng.integers(len(statements), size=batch))]
        wrong = torch.from_numpy(rng.integers(len(graph.entities), size=(batch, negatives)))
        began = time.perf_counter()
        optimiser.zero_grad()
        scores = model(torch.cat([part, wrong], 1))
        torch.nn.functional.cross_entropy(scores, torch.zeros(batch, dtype=torch.int64)).backward()
        optimiser.step()
        times.append(time.perf_counter() - began)
    return batch / median(times[1:])


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure and print."""
    parser = arguments(
        __doc__,
        data="fb15k-237",
        dimension=128,
        batch=1024,
        negatives=32,
        repeats=5,
        steps=260,
        large=1_000_000,
    )
    parser.add_argument("--models", default="transe,distmult,complex,rotate")
    o = parser.parse_args(argv)
    facts = settings(data=o.data, dimension=o.dimension, batch=o.batch, negatives_per_positive=o.negatives)
    graph = benchmark(o.data)
    ours, ratios, peers, over = {}, {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in o.models.split(","):
            plain = Ordinary(name, graph, o)
            plain.time()
            before = peak_memory()
            lazy = Private(name, graph, o, "lazy", Path(folder))
            lazy.time()
            tables = 4 * sum(
                t.numel() for t in (lazy.state.parameters.entities, lazy.state.parameters.relations)
            )
            over[name] = max(0, peak_memory() - before - tables) / 1e6
            times, private = alternate(plain.time, lazy.time, o.repeats)
            theirs = Training(name, graph, o.dimension, o.batch, o.negatives)
            peers[name] = len(graph.train) / theirs.epochs(1)
            ours[name] = {"ordinary_sgd": 1 / median(times), "lazy": 1 / median(private)}
            ratios[name] = median(times) / median(private)
            say(f"{name}: {ours[name]}, ratio {ratios[name]:.2f}, PyKEEN {peers[name]:,.0f}")
        growth = _growth(o, Path(folder))
    by_opacus = {}
    for batch in (64, 256):
        by_opacus[batch] = opacus(graph, o.dimension, batch, o.negatives)
        say(f"opacus at batch {batch}: {by_opacus[batch]:,.0f} positives/s")
    alike = ours.get("distmult") or min(ours.values(), key=lambda found: found["lazy"])
    return finish(
        {
            "ours": ours,
            "peers": {"pykeen": peers, "opacus": by_opacus},
            "ratio": min(ratios.values()),
            "ratios": ratios,
            "over_pykeen": min(ours[n]["lazy"] / peers[n] for n in ours),
            "over_opacus": alike["lazy"] / max(by_opacus.values()),
            "megabytes_over_tables": over,
            "growth": growth,
            "settings": facts,
        }
    )


def _growth(o: Any, folder: Path) -> dict[str, float]:
    """Milliseconds of a lazy and a dense step with 15 thousand and with a million entities."""
    found: dict[str, float] = {}
    for size, statements in ((15_000, 300_000), (o.large, 2_000_000)):
        graph = random_graph(size, statements)
        for mechanism, steps in (("lazy", o.steps), ("dense", 3)):
            o.steps, keep = steps, o.steps
            place = folder / f"{size}-{mechanism}"
            place.mkdir()
            stepper = Private("distmult", graph, o, mechanism, place)
            stepper.time()
            found[f"{mechanism}_ms_{size}"] = 1e3 * o.batch * median([stepper.time() for _ in range(3)])
            o.steps = keep
            del stepper
    small, large = 15_000, o.large
    found["ratio_lazy"] = found[f"lazy_ms_{large}"] / found[f"lazy_ms_{small}"]
    found["dense_over_lazy"] = found[f"dense_ms_{large}"] / found[f"lazy_ms_{large}"]
    say(f"growth: {found}")
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
