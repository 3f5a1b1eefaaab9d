"""What privacy costs in quality, on FB15k-237: ComplEx with the defaults of private training, several seeds.

``--set relations`` makes a random half of the relations confidential, ``--set random`` a random half of the statements,
``--set all`` everything. Beside each ε: the same training that drops confidential statements (nothing is left of
``--set all``), also with exact counts of what is unrestricted (``counted``), the noisy counts alone as the product denoises
them (``counts``: ``--model marginals``) and as they are released (``raw``), and a training on answers (``release``). A seed
chooses the half and the start; noise is always fresh.
MRR on the confidential test statements (relations) or on all of them; mean, and 95 % interval over seeds.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from common import arguments, benchmark, finish, say, settings
from veilgraph.account.epsilon import DELTA
from veilgraph.load import Graph
from veilgraph.load.marks import Marks
from veilgraph.mark import mark, may_be_confidential
from veilgraph.rank.metrics import interval, summarise
from veilgraph.rank.ranking import Ranker
from veilgraph.train import train
from veilgraph_experiments.raw_counts import raw_counts

ORDINARY = {"model": "complex", "dimension": 200, "schedule": "linear"}


def marks_of(graph: Graph, kind: str, seed: int) -> Marks:
    """The marks of one experiment."""
    if kind == "random":
        return mark(graph, random_share=0.5, seed=seed)
    if kind == "relations":
        names = list(graph.relations)
        chosen = np.random.default_rng(seed).choice(len(names), len(names) // 2, replace=False)
        return mark(graph, relations=[names[i] for i in sorted(chosen)])
    return mark(graph, everything=True)


def measure(graph: Graph, kind: str, seed: int, **chosen: Any) -> dict[str, float]:
    """Train once and rank the test split."""
    folder = Path(tempfile.mkdtemp())
    try:
        marked = graph.with_marks(marks_of(graph, kind, seed))
        run = train(marked, out=folder / "run", seed=seed, **chosen)
        found = run.evaluate("test", graph=marked)
        found = found["confidential"] if kind == "relations" else found
        return {key: found[key] for key in ("mrr", "mr", "hits@10")}
    finally:
        shutil.rmtree(folder)


def measure_raw(graph: Graph, kind: str, seed: int, epsilon: float) -> dict[str, float]:
    """Counts of the confidential training statements with nothing but noise, ranked."""
    marked = graph.with_marks(marks_of(graph, kind, seed))
    model, p = raw_counts(graph, graph.train[marked.secret("train")], epsilon, DELTA)
    asked = graph.splits["test"]
    asked = asked[may_be_confidential(marked)[asked[:, 1]]] if kind == "relations" else asked
    ranks = Ranker(graph.triples, len(graph.relations)).rank(model, p, asked, reciprocal=False)
    found = summarise(ranks.rank, ranks.candidates)
    return {key: found[key] for key in ("mrr", "mr", "hits@10")}


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Mean and half-width of the 95 % interval (Student) of each figure."""
    out: dict[str, Any] = {"seeds": len(rows)}
    for key in rows[0]:
        values = [row[key] for row in rows]
        out[key] = {"mean": statistics.mean(values), "interval": interval(values), "values": values}
    return out


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure and print."""
    parser = arguments(__doc__, data="fb15k-237", set="relations", seeds=5, first=1, epochs=6)
    parser.add_argument("--epsilons", default="1,8")
    parser.add_argument(
        "--kinds", default="dropped,counted,raw,counts,private,release", help="only these, comma-separated"
    )
    o = parser.parse_args(argv)
    facts = settings(data=o.data, set=o.set, epochs=o.epochs, **ORDINARY)
    graph, kinds = benchmark(o.data), o.kinds.split(",")
    cases: dict[str, dict[str, Any]] = {}
    if "dropped" in kinds and o.set != "all":
        cases["dropped"] = {**ORDINARY, "epochs": o.epochs, "drop_confidential": True}
    if "counted" in kinds and o.set != "all":
        cases["dropped, counted"] = {
            **ORDINARY, "epochs": o.epochs, "drop_confidential": True, "prior": "marginals",
        }  # fmt: skip
    for epsilon in map(float, o.epsilons.split(",")):
        if "raw" in kinds and o.set != "random":
            cases[f"raw, ε = {epsilon:g}"] = {"raw": epsilon}
        if "counts" in kinds:
            cases[f"counts, ε = {epsilon:g}"] = {
                "model": "marginals",
                "epsilon": epsilon,
                "accept_reached": True,
            }
        if "release" in kinds:
            cases[f"released, ε = {epsilon:g}"] = {
                **ORDINARY, "epochs": o.epochs, "epsilon": epsilon, "mechanism": "respond",
                "accept_reached": True,
            }  # fmt: skip
        if "private" in kinds and o.set != "all":
            cases[f"private, ε = {epsilon:g}"] = {**ORDINARY, "epochs": o.epochs, "epsilon": epsilon}
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    for seed in range(o.first, o.first + o.seeds):
        for name, chosen in cases.items():
            if "raw" in chosen:
                rows[name].append(measure_raw(graph, o.set, seed, chosen["raw"]))
            else:
                rows[name].append(measure(graph, o.set, seed, **chosen))
            say(f"{o.set}, seed {seed}, {name}: {rows[name][-1]}")
    return finish({"rows": {name: summary(found) for name, found in rows.items()}, "settings": facts})


if __name__ == "__main__":
    main(sys.argv[1:])
