"""DPKGE, Table 4: do embeddings of patients cluster as they do without privacy?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from veilgraph.load import Graph
from veilgraph.rank.metrics import interval
from veilgraph_experiments import dpkge
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

KS = (2, 3, 4)
REGIMES = ("dropped", "as published", "sound")


def mutual_information(one: Sequence[int], other: Sequence[int]) -> float:
    """Normalised by the arithmetic mean of the entropies; 1 for the same clustering, about 0 for unrelated ones."""
    n, both = len(one), Counter(zip(one, other))
    first, second = Counter(one), Counter(other)

    def entropy(counts: Counter[int]) -> float:
        return -sum(c / n * math.log(c / n) for c in counts.values())

    shared = sum(c / n * math.log(c * n / (first[a] * second[b])) for (a, b), c in both.items())
    whole = (entropy(first) + entropy(second)) / 2
    return shared / whole if whole > 0 else 1.0


class Clusters(Experiment):
    """k-means of patients' vectors, compared with the clusters of a training without privacy. «itself» is another seed."""

    name = "dpkge-table4"
    title = "DPKGE, Table 4: agreement (NMI) of patients' clusters with those found without privacy, TransE, eICU demo"
    data = ("eicu",)
    paper = tuple(
        {"k": k, "regime": regime, "nmi": value}
        for regime, values in (("as published", (0.96, 0.34, 0.28)), ("dropped", (0.02, 0.04, 0.05)))
        for k, value in zip(KS, values)
    )

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        graph = graphs["eicu"]
        return {
            f"{regime} {seed}": dpkge.job(
                str(graph.source),
                graph,
                regime,
                "transe",
                None,
                sigma=0.7,
                epochs=scale.length(30),
                seed=seed,
                measures=("clusters",),
                prefix="urn:eicu:patient/",
                ks=list(KS),
            )
            for regime in ("no privacy", *REGIMES)
            for seed in range(scale.pick(2, max(2, scale.seeds)))
        }

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        seeds, rows = range(scale.pick(2, max(2, scale.seeds))), []
        for k in KS:
            for regime in ("no privacy", *REGIMES):
                values = [
                    mutual_information(
                        results[f"no privacy {a}"]["clusters"][str(k)],
                        results[f"{regime} {b}"]["clusters"][str(k)],
                    )
                    for a in seeds
                    for b in seeds
                    if regime != "no privacy" or a < b
                ]
                found = results[f"{regime} 0"]
                label = "itself" if regime == "no privacy" else regime
                rows.append(
                    {
                        "k": k,
                        "regime": label,
                        "nmi": dpkge.mean(values),
                        "nmi ±": interval(values),
                        "pairs": len(values),
                        "epsilon": found["epsilon"],
                    }
                )
        return rows


EXPERIMENTS = (Clusters(),)
