"""DPKGE, Tables 5 to 9: link prediction of four models in every regime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veilgraph.load import Graph
from veilgraph_experiments import dpkge
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

COLUMNS = ("model", "regime", "sigma", "mr", "hits@10", "epsilon_as_published")


def published(*lines: tuple[Any, ...]) -> list[Row]:
    """The paper's rows: Hits@10 in percent there, as a share here."""
    return [dict(zip(COLUMNS, (*line[:4], line[4] / 100, *line[5:]), strict=True)) for line in lines]


N, U, D, F = "no privacy", "dropped", "as published", "all noisy, as published"
TABLE5 = published(
    ("transe", N, None, 88.15, 51.47, None), ("transe", U, None, 245.37, 35.55, None),
    ("transe", D, 1.0, 286.21, 34.28, 3.92), ("transe", F, 1.0, 1978.67, 7.29, 2.70),
    ("transm", N, None, 84.29, 52.69, None), ("transm", U, None, 236.68, 36.01, None),
    ("transm", D, 1.0, 223.53, 38.49, 3.92), ("transm", F, 1.0, 1705.77, 7.99, 2.70),
    ("rescal", N, None, 116.24, 46.37, None), ("rescal", U, None, 349.28, 33.70, None),
    ("rescal", D, 1.0, 290.77, 34.83, 3.92), ("rescal", F, 1.0, 1544.82, 22.41, 2.70),
    ("distmult", N, None, 147.93, 48.34, None), ("distmult", U, None, 515.61, 31.85, None),
    ("distmult", D, 1.0, 443.72, 29.12, 3.92), ("distmult", F, 1.0, 1459.05, 6.41, 2.70),
)  # fmt: skip
TABLE6 = published(
    ("transe", N, None, 991.84, 22.29, None), ("transe", U, None, 3531.16, 17.79, None),
    ("transe", D, 1.0, 2034.91, 18.76, 3.25), ("transe", F, 1.0, 10300.87, 8.06, 2.27),
    ("transm", N, None, 1061.27, 18.16, None), ("transm", U, None, 2877.73, 15.39, None),
    ("transm", D, 1.0, 1803.95, 15.95, 3.25), ("transm", F, 1.0, 8396.76, 10.34, 2.27),
    ("rescal", N, None, 4255.91, 10.74, None), ("rescal", U, None, 7812.01, 8.35, None),
    ("rescal", D, 1.0, 5382.13, 8.73, 3.25), ("rescal", F, 1.0, 17849.35, 4.70, 2.27),
    ("distmult", N, None, 2622.48, 10.54, None), ("distmult", U, None, 5285.32, 8.02, None),
    ("distmult", D, 1.0, 3212.65, 11.18, 3.25), ("distmult", F, 1.0, 58610.68, 0.29, 2.27),
)  # fmt: skip
TABLE7 = published(
    ("transe", N, None, 179.01, 44.79, None), ("transe", U, None, 346.85, 31.03, None),
    ("transe", D, 1.0, 259.23, 39.86, 4.49), ("transe", F, 1.0, 1045.20, 29.92, 3.08),
    ("transm", N, None, 176.23, 45.34, None), ("transm", U, None, 316.83, 32.41, None),
    ("transm", D, 1.0, 249.01, 40.87, 4.49), ("transm", F, 1.0, 1420.87, 30.85, 3.08),
    ("rescal", N, None, 328.73, 39.88, None), ("rescal", U, None, 626.00, 29.06, None),
    ("rescal", D, 1.0, 421.86, 35.41, 4.49), ("rescal", F, 1.0, 1613.17, 24.08, 3.08),
    ("distmult", N, None, 422.37, 34.40, None), ("distmult", U, None, 752.85, 22.35, None),
    ("distmult", D, 1.0, 507.36, 31.97, 4.49), ("distmult", F, 1.0, 3611.03, 9.43, 3.08),
)  # fmt: skip
TABLE8 = published(
    ("transe", N, None, 14662.63, 14.30, None), ("transe", U, None, 31012.00, 15.88, None),
    ("transe", D, 1.0, 19366.46, 34.10, 4.11), ("transe", F, 1.0, 21393.56, 25.48, 3.04),
    ("transm", N, None, 21540.11, 9.83, None), ("transm", U, None, 30209.67, 9.61, None),
    ("transm", D, 1.0, 24169.05, 10.39, 4.11), ("transm", F, 1.0, 26876.66, 10.54, 3.04),
    ("rescal", N, None, 18211.51, 28.11, None), ("rescal", U, None, 42585.14, 19.52, None),
    ("rescal", D, 1.0, 24423.61, 31.14, 4.11), ("rescal", F, 1.0, 36043.25, 18.75, 3.04),
    ("distmult", N, None, 24259.69, 5.88, None), ("distmult", U, None, 37233.58, 12.98, None),
    ("distmult", D, 1.0, 26375.88, 13.83, 4.11), ("distmult", F, 1.0, 50747.99, 4.32, 3.04),
)  # fmt: skip
TABLE9 = published(
    ("transe", N, None, 23647.72, 30.91, None), ("transe", U, None, 75037.60, 16.79, None),
    ("transe", D, 1.0, 36832.10, 23.42, 3.23), ("transe", F, 1.0, 31767.64, 34.32, 2.12),
    ("transm", N, None, 15675.34, 34.25, None), ("transm", U, None, 67626.25, 17.18, None),
    ("transm", D, 1.0, 24891.37, 24.55, 3.23), ("transm", F, 1.0, 37891.27, 33.05, 2.12),
    ("rescal", N, None, 45388.82, 30.83, None), ("rescal", U, None, 83410.55, 18.89, None),
    ("rescal", D, 1.0, 61338.77, 23.51, 3.23), ("rescal", F, 1.0, 41433.16, 31.43, 2.12),
    ("distmult", N, None, 22932.37, 7.97, None), ("distmult", U, None, 75115.09, 10.61, None),
    ("distmult", D, 1.0, 27643.34, 17.22, 3.23), ("distmult", F, 1.0, 70114.11, 14.77, 2.12),
)  # fmt: skip


class LinkPrediction(Experiment):
    """Four models in every regime on one graph, σ = 1."""

    name = "dpkge-link"
    title = "link prediction"

    def __init__(self, name: str, title: str, data: str, marked: bool, paper: Sequence[Row]) -> None:
        self.name, self.title, self.data, self.marked, self.paper = name, title, (data,), marked, paper  # type: ignore[misc]

    def _plan(self, scale: Scale) -> list[tuple[str, str, int]]:
        models = scale.pick(("transe", "distmult"), dpkge.MODELS)
        return [
            (model, regime, seed)
            for model in models
            for regime in dpkge.REGIMES
            for seed in range(scale.pick(1, scale.seeds))
        ]

    def _epochs(self, scale: Scale) -> int:
        return scale.length(10)

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        graph = graphs[self.data[0]]
        return {
            f"{case}": dpkge.job(
                str(graph.source),
                graph,
                case[1],
                case[0],
                None if self.marked else dpkge.half(case[2]),
                epochs=self._epochs(scale),
                seed=case[2],
            )
            for case in self._plan(scale)
        }

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        graph, rows = graphs[self.data[0]], []
        n = len(graph.train)
        secret = dpkge.count(graph, None if self.marked else dpkge.half(0))
        for (model, regime), found in dpkge.over_seeds(self._plan(scale), results).items():
            of = n if "all noisy" in regime else secret
            claimed = regime not in dpkge.FREE
            by_paper = dpkge.published_epsilon(n, of, 1.0, self._epochs(scale)) if claimed else None
            rows.append(
                {"model": model, "regime": regime, **dpkge.summary(found), "epsilon_as_published": by_paper}
            )
        return rows


EXPERIMENTS = (
    LinkPrediction(
        "dpkge-table5",
        "DPKGE, Table 5: FB15k (or put its files where they are looked for)",
        "fb15k",
        False,
        TABLE5,
    ),
    LinkPrediction("dpkge-table6", "DPKGE, Table 6: YAGO3-10", "yago3-10", False, TABLE6),
    LinkPrediction(
        "dpkge-table7",
        "DPKGE, Table 7: FB15k-237, half of the statements confidential",
        "fb15k-237",
        False,
        TABLE7,
    ),
    LinkPrediction("dpkge-table8", "DPKGE, Table 8: eICU (here: the demo's 174 stays)", "eicu", True, TABLE8),
    LinkPrediction(
        "dpkge-table9", "DPKGE, Table 9: MIMIC-III (here: the demo's 100 patients)", "mimic-iii", True, TABLE9
    ),
    LinkPrediction(
        "dpkge-wn18",
        "WN18 in place of what cannot be had, half of the statements confidential",
        "wn18",
        False,
        (),
    ),
)
