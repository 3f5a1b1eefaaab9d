"""DPKGE, Tables 2 and 3: clip norm × σ on FB15k-237."""

from __future__ import annotations

from collections.abc import Mapping

from veilgraph.load import Graph
from veilgraph_experiments import dpkge
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

PUBLISHED = {  # (model, percentile): (MR, Hits@10 in percent) at σ 0.7, 1.0, 1.3, 10
    ("distmult", 20): ((465.81, 32.60), (507.36, 31.98), (529.74, 32.49), (715.41, 30.97)),
    ("distmult", 50): ((551.06, 32.91), (537.43, 32.39), (562.81, 31.90), (721.71, 31.02)),
    ("distmult", 80): ((568.86, 32.95), (596.53, 32.11), (600.98, 31.28), (713.97, 30.54)),
    ("distmult", 100): ((674.90, 31.43), (700.29, 31.19), (723.76, 30.75), (749.89, 30.82)),
    ("transe", 20): ((250.45, 40.28), (259.23, 39.87), (263.46, 39.47), (287.03, 39.47)),
    ("transe", 50): ((262.85, 39.77), (261.32, 40.03), (269.26, 39.83), (280.44, 38.98)),
    ("transe", 80): ((273.11, 39.47), (271.29, 39.21), (268.90, 39.34), (290.32, 38.86)),
    ("transe", 100): ((293.15, 38.75), (278.00, 39.00), (295.95, 38.66), (290.55, 38.65)),
    ("transm", 20): ((238.18, 41.47), (249.01, 40.88), (254.98, 41.30), (260.65, 40.66)),
    ("transm", 50): ((245.33, 41.13), (257.76, 40.71), (258.78, 40.72), (261.72, 40.26)),
    ("transm", 80): ((255.50, 40.77), (262.92, 40.65), (268.96, 40.48), (260.67, 41.00)),
    ("transm", 100): ((271.05, 40.28), (269.53, 40.35), (276.16, 40.25), (268.63, 40.25)),
    ("rescal", 20): ((389.18, 35.87), (421.87, 35.41), (426.68, 34.75), (547.41, 33.61)),
    ("rescal", 50): ((415.09, 35.44), (467.01, 34.20), (470.47, 34.65), (557.22, 33.41)),
    ("rescal", 80): ((436.41, 34.60), (478.58, 34.39), (479.17, 34.06), (576.07, 32.66)),
    ("rescal", 100): ((541.70, 33.37), (556.85, 33.24), (602.73, 33.44), (569.41, 32.92)),
}
SIGMAS = (0.7, 1.0, 1.3, 10.0)


class ClipAndNoise(Experiment):
    """As published (noise on touched rows): the sound mechanisms take σ from ε, and the clip as a private quantile."""

    name = "dpkge-table2-3"
    title = "DPKGE, Tables 2 and 3: clip at a percentile of the gradient norms × σ, as published"
    data = ("fb15k-237",)
    paper = tuple(
        {"model": model, "percentile": percentile, "sigma": sigma, "mr": mr, "hits@10": hits / 100}
        for (model, percentile), cells in PUBLISHED.items()
        for sigma, (mr, hits) in zip(SIGMAS, cells)
    )

    def _cases(self, scale: Scale) -> list[tuple[str, int, float, int]]:
        return [
            (model, percentile, sigma, seed)
            for model in scale.pick(("transe",), dpkge.MODELS)
            for percentile in scale.pick((20, 80), (20, 50, 80, 99))
            for sigma in scale.pick((1.0, 10.0), SIGMAS)
            for seed in range(scale.pick(1, scale.seeds))
        ]

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        graph = graphs["fb15k-237"]
        return {
            f"{case}": dpkge.job(
                str(graph.source),
                graph,
                "as published",
                case[0],
                dpkge.half(case[3]),
                sigma=case[2],
                quantile=case[1] / 100,
                epochs=scale.length(10),
                seed=case[3],
            )
            for case in self._cases(scale)
        }

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows = []
        for (model, percentile, sigma), found in dpkge.over_seeds(self._cases(scale), results).items():
            clip = dpkge.mean([result["clip_norm"] for result in found])
            rows.append(
                {
                    "model": model,
                    "percentile": percentile,
                    "sigma": sigma,
                    "clip": clip,
                    **dpkge.summary(found),
                }
            )
        return rows


EXPERIMENTS = (ClipAndNoise(),)
