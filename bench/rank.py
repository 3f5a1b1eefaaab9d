"""Filtered ranking speed against PyKEEN's evaluator, and against the bare matrix product with a comparison.

FB15k-237 test, both sides. Ours ranks everything; PyKEEN a part (its rate does not depend on how many). The limit is
what the score matrix and one comparison per score cost in Torch, nothing else.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from pykeen.evaluation import RankBasedEvaluator

from common import alternate, arguments, benchmark, finish, median, say, seconds, settings
from peers import create, factory, parameters, scorer
from veilgraph import models
from veilgraph.rank.metrics import summarise
from veilgraph.rank.ranking import Ranker

DOT, DISTANCE = ("distmult", "complex"), ("transe", "rotate")


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure and print."""
    o = arguments(__doc__, data="fb15k-237", dimension=128, peer_triples=512, repeats=3).parse_args(argv)
    facts = settings(data=o.data, dimension=o.dimension, peer_triples=o.peer_triples)
    graph = benchmark(o.data)
    ranker = Ranker(graph.triples, len(graph.relations))
    test = graph.splits["test"]
    subset = test[np.random.default_rng(0).permutation(len(test))[: o.peer_triples]]
    ours, peers, ratios, limits, agree = {}, {}, {}, {}, {}
    for name in (*DOT, *DISTANCE):
        peer, _ = create(name, graph, o.dimension)
        model, p = models.create(name, o.dimension), parameters(name, peer)
        evaluator = RankBasedEvaluator(filtered=True)
        extra = [factory(graph, split).mapped_triples for split in ("train", "valid")]
        found: dict[str, float] = {}

        def theirs(
            peer: Any = peer, evaluator: Any = evaluator, extra: Any = extra, found: Any = found
        ) -> float:
            def go() -> None:
                result = evaluator.evaluate(
                    peer,
                    torch.from_numpy(subset.astype(np.int64)),
                    additional_filter_triples=extra,
                    batch_size=128,
                    use_tqdm=False,
                )
                found["mrr"] = float(result.get_metric("both.realistic.inverse_harmonic_mean_rank"))

            return 2 * len(subset) / seconds(go)

        def mine(model: Any = model, p: Any = p) -> float:
            return 2 * len(test) / seconds(lambda: ranker.rank(model, p, test, reciprocal=False))

        ranker.rank(model, p, subset, reciprocal=False)  # compile
        fast, slow = alternate(mine, theirs, o.repeats)
        ours[name], peers[name] = median(fast), median(slow)
        ratios[name] = ours[name] / peers[name]
        known = Ranker(np.concatenate([graph.train, graph.splits["valid"], subset]), len(graph.relations))
        ranks = known.rank(scorer(name, o.dimension), p, subset, reciprocal=False)
        agree[name] = {"ours": summarise(ranks.rank, ranks.candidates)["mrr"], "pykeen": found["mrr"]}
        if name in DOT:
            limits[name] = median(
                [2 * len(test) / _bare(p.entities, 2 * len(test)) for _ in range(o.repeats)]
            )
        say(f"{name}: {ours[name]:,.0f} against {peers[name]:,.0f} queries/s ({ratios[name]:.1f} ×)")
    return finish(
        {
            "ours": ours,
            "peers": {"pykeen": peers},
            "ratio": min(ratios[name] for name in DOT),
            "ratio_distance": min(ratios[name] for name in DISTANCE),
            "of_limit": min(ours[name] / limits[name] for name in DOT),
            "ratios": ratios,
            "limit": limits,
            "mrr_of_random_vectors": agree,
            "settings": facts,
        }
    )


def _bare(entities: torch.Tensor, queries: int, size: int = 1024) -> float:
    """Seconds for scores of so many queries and one comparison of each score with its query's target."""
    query = torch.randn(size, entities.shape[1])
    target = torch.zeros(size, 1)
    out = torch.empty(size, len(entities))

    def go() -> None:
        with torch.no_grad():
            for _ in range(-(-queries // size)):
                torch.mm(query, entities.T, out=out)
                torch.gt(out, target).sum(1)

    return seconds(go)


if __name__ == "__main__":
    main(sys.argv[1:])
