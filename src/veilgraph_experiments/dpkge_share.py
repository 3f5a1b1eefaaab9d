"""DPKGE, Figure 5: what changes as more is confidential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veilgraph.load import Graph
from veilgraph.pictures import lines
from veilgraph_experiments import dpkge
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

SHARES = (0.0, 0.25, 0.5, 0.75, 0.85, 0.95, 1.0)
REGIMES = ("dropped", "as published", "sound", "counts")


class Shares(Experiment):
    """TransE on FB15k-237 at σ = 0.7, the sound regimes at the ε the paper would claim."""

    name = "dpkge-figure5"
    title = "DPKGE, Figure 5: MR and Hits@10 by the confidential share, TransE, FB15k-237 (the paper: FB15k, a picture)"
    data = ("fb15k-237",)

    def _cases(self, scale: Scale) -> list[tuple[float, str, int]]:
        return [
            (share, regime, seed)
            for share in scale.pick((0.25, 0.75, 1.0), SHARES)
            for regime in REGIMES
            for seed in range(scale.pick(1, scale.seeds))
            if (share < 1 or regime != "dropped") and (share > 0 or regime == "dropped")
        ]

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        graph = graphs["fb15k-237"]
        return {
            f"{case}": dpkge.job(
                str(graph.source),
                graph,
                case[1],
                "transe",
                dpkge.EVERYTHING if case[0] == 1 else dpkge.half(case[2], case[0]),
                sigma=0.7,
                epochs=scale.length(10),
                seed=case[2],
            )
            for case in self._cases(scale)
        }

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        n, rows = len(graphs["fb15k-237"].train), []
        for (share, regime), found in dpkge.over_seeds(self._cases(scale), results).items():
            claimed = None
            if regime != "dropped":
                claimed = dpkge.published_epsilon(n, max(1, round(share * n)), 0.7, scale.length(10))
            rows.append(
                {"share": share, "regime": regime, **dpkge.summary(found), "epsilon_as_published": claimed}
            )
        return rows

    def picture(self, rows: Sequence[Row]) -> str | None:
        series = {
            regime: [(row["share"], row["hits@10"]) for row in rows if row["regime"] == regime]
            for regime in REGIMES
        }
        return lines(
            {name: points for name, points in series.items() if points},
            "confidential share",
            "Hits@10",
            "Hits@10 by the confidential share, in four regimes",
        )


EXPERIMENTS = (Shares(),)
