"""Training speed and time to quality against PyKEEN.

FB15k-237, the same number of reals per entity, the same batch. Speed: positives per second over whole epochs,
alternating, median. Quality: PyKEEN's filtered test MRR after its epochs, and how long ours takes to reach it
(training time only, both ranked by our evaluator).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from common import alternate, arguments, benchmark, finish, median, say, settings
from peers import Training, parameters, scorer
from veilgraph.load import Graph
from veilgraph.rank.metrics import summarise
from veilgraph.rank.ranking import Ranker
from veilgraph.train import complete_config
from veilgraph.train.session import Session

OURS: dict[str, dict[str, Any]] = {
    "transe": {"loss": "self-adversarial", "optimiser": "adam", "learning_rate": 0.002, "reciprocal": False},
    "rotate": {
        "loss": "self-adversarial",
        "optimiser": "adam",
        "learning_rate": 0.005,
        "margin": 6.0,
        "reciprocal": False,
    },
    "distmult": {"loss": "softmax", "optimiser": "adagrad", "learning_rate": 0.1, "regulariser": "n3"},
    "complex": {"loss": "softmax", "optimiser": "adagrad", "learning_rate": 0.1, "regulariser": "n3"},
}


class Ours:
    """Our training, epoch by epoch."""

    def __init__(self, name: str, graph: Graph, dimension: int, batch: int, negatives: int) -> None:
        config, _ = complete_config(
            graph,
            {
                "model": name,
                "dimension": dimension,
                "batch": batch,
                "negatives": negatives // 2,  # per side: as many per statement as the peer
                "chunk": 128,
                "candidates": "sampled",
                "averaging": 0,
                **OURS[name],
            },
        )
        session = Session.open(graph, config)
        self.config, self.model = config, session.model
        self.plan, self.state = session.ordinary_plan(), session.state

    def epoch(self) -> float:
        """One pass; returns its seconds."""
        import time

        began = time.perf_counter()
        with torch.no_grad():
            for batch in self.plan.batches(self.state.epoch):
                self.plan.step(self.state.parameters, self.state.optimisers, batch, 1.0)
        self.state.epoch += 1
        return time.perf_counter() - began


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure and print."""
    parser = arguments(
        __doc__, data="fb15k-237", dimension=128, batch=1024, negatives=32, epochs=10, repeats=3
    )
    parser.add_argument("--models", default="transe,distmult,complex,rotate")
    o = parser.parse_args(argv)
    facts = settings(data=o.data, dimension=o.dimension, batch=o.batch, negatives_per_positive=o.negatives)
    graph = benchmark(o.data)
    ranker = Ranker(graph.triples, len(graph.relations))
    ours, peers, ratios, quality = {}, {}, {}, {}
    for name in o.models.split(","):
        mine = Ours(name, graph, o.dimension, o.batch, o.negatives)
        theirs = Training(name, graph, o.dimension, o.batch, o.negatives)
        mine.epoch()  # compile and warm up
        warm = Ours(name, graph, o.dimension, o.batch, o.negatives)
        times, peer_times = alternate(warm.epoch, lambda t=theirs: t.epochs(1), o.repeats)
        statements = len(graph.train)
        ours[name], peers[name] = statements / median(times), statements / median(peer_times)
        ratios[name] = ours[name] / peers[name]
        spent = sum(peer_times) + theirs.epochs(o.epochs - o.repeats)
        target = _mrr(ranker, graph, theirs.model, name)
        quality[name] = _time_to(name, graph, o, ranker, target) | {"peer_mrr": target, "peer_seconds": spent}
        quality[name]["time_ratio"] = spent / quality[name]["seconds"] if quality[name]["reached"] else 0.0
        say(
            f"{name}: {ours[name]:,.0f} against {peers[name]:,.0f} positives/s ({ratios[name]:.1f} ×); {quality[name]}"
        )
    return finish(
        {
            "ours": ours,
            "peers": {"pykeen": peers},
            "ratio": min(ratios.values()),
            "ratios": ratios,
            "quality": quality,
            "time_ratio": min(q["time_ratio"] for q in quality.values()),
            "settings": facts,
        }
    )


def _mrr(ranker: Ranker, graph: Graph, peer: Any, name: str) -> float:
    p = parameters(name, peer)
    ranks = ranker.rank(scorer(name, p.entities.shape[1]), p, graph.splits["test"], reciprocal=False)
    return summarise(ranks.rank, ranks.candidates)["mrr"]


def _time_to(name: str, graph: Graph, o: Any, ranker: Ranker, target: float) -> dict[str, Any]:
    """Our training until its test MRR is at least the peer's."""
    ours = Ours(name, graph, o.dimension, o.batch, o.negatives)
    seconds, mrr = 0.0, 0.0
    sample = graph.splits["test"][np.random.default_rng(0).permutation(len(graph.splits["test"]))]
    while mrr < target and ours.state.epoch < 3 * o.epochs:
        seconds += ours.epoch()
        ranks = ranker.rank(
            ours.model, ours.state.parameters, sample, reciprocal=bool(ours.config.reciprocal)
        )
        mrr = summarise(ranks.rank, ranks.candidates)["mrr"]
    return {"mrr": mrr, "seconds": seconds, "epochs": ours.state.epoch, "reached": mrr >= target}


if __name__ == "__main__":
    main(sys.argv[1:])
