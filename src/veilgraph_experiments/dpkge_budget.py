"""DPKGE, Table 1 (sizes) and Figure 4 (ε over epochs): no training needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veilgraph.account import spent
from veilgraph.account.events import gaussian, repeated, sampled
from veilgraph.load import Graph
from veilgraph.pictures import lines
from veilgraph_experiments import dpkge
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

SIGMAS = (0.7, 1.0, 1.3, 10.0)


class Sizes(Experiment):
    """How large the graphs are, beside the paper's."""

    name = "dpkge-table1"
    title = (
        "DPKGE, Table 1: sizes. The clinical graphs here are open demos, a hundredth of what the paper had"
    )
    data = ("fb15k-237", "eicu", "mimic-iii", "synthea")
    paper = tuple(
        dict(zip(("graph", "entities", "relations", "train", "valid", "test", "confidential"), row))
        for row in (
            ("fb15k", 14951, 1345, 483142, 50000, 59071, None),
            ("fb15k-237", 14541, 237, 272115, 17535, 20466, None),
            ("yago3-10", 123182, 37, 1079040, 5000, 5000, None),
            ("eicu", 122186, 16, 289719, 29824, 33724, 165917),
            ("mimic-iii", 308878, 97, 1482059, 152565, 181626, 652605),
        )
    )

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        return {}

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        return [
            {
                "graph": name,
                "entities": len(graph.entities),
                "relations": len(graph.relations),
                **{split: len(array) for split, array in graph.splits.items()},
                "confidential": int(graph.secret("train").sum()) if graph.marks is not None else None,
            }
            for name, graph in graphs.items()
        ]


class Epsilon(Experiment):
    """ε while training goes on, as the paper counts it and as we do, on FB15k's published size."""

    name = "dpkge-figure4"
    title = "DPKGE, Figure 4: ε over epochs on FB15k (483,142 statements, half of them confidential)"
    paper = tuple(
        {"sigma": sigma, "epoch": 100, "confidential": share, "epsilon_as_published": value}
        for share, values in (("half", (8.79, 3.92, 2.60, 0.30)), ("all", (6.02, 2.70, 1.81, 0.25)))
        for sigma, value in zip(SIGMAS, values)
    )

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        return {}

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        n, rows = 483_142, []
        for share, of in (("half", n // 2), ("all", n)):
            for sigma in SIGMAS:
                for epoch in scale.pick((1, 10, 50, 100), (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)):
                    rate, steps = n**0.5 / of, max(1, round(epoch * of / n**0.5))
                    ours = spent([repeated(steps, sampled(rate, gaussian(sigma)))], 1 / n)
                    rows.append(
                        {
                            "confidential": share,
                            "sigma": sigma,
                            "epoch": epoch,
                            "epsilon_as_published": dpkge.published_epsilon(n, of, sigma, epoch),
                            "epsilon_by_pld": ours.pld,
                            "epsilon_by_rdp": ours.rdp,
                        }
                    )
        return rows

    def picture(self, rows: Sequence[Row]) -> str | None:
        series = {
            f"σ = {sigma}, {share}": [
                (row["epoch"], row["epsilon_as_published"])
                for row in rows
                if row["sigma"] == sigma and row["confidential"] == share
            ]
            for share in ("half", "all")
            for sigma in SIGMAS
        }
        return lines(
            series, "epochs", "ε as the paper counts it", "ε over epochs for four σ, half or all confidential"
        )


EXPERIMENTS = (Sizes(), Epsilon())
