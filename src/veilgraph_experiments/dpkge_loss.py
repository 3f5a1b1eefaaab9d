"""DPKGE, Figure 3: loss over epochs in every regime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veilgraph.load import Graph
from veilgraph.pictures import lines
from veilgraph_experiments import dpkge
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

REGIMES = ("no privacy", "dropped", "as published", "all noisy, as published")


class Losses(Experiment):
    """Mean loss of an epoch's batches, unrestricted and confidential ones together."""

    name = "dpkge-figure3"
    title = "DPKGE, Figure 3: loss over epochs, FB15k-237, σ = 1 (the paper gives a picture, no numbers)"
    data = ("fb15k-237",)

    def _cases(self, scale: Scale) -> list[tuple[str, str]]:
        return [(m, r) for m in scale.pick(("transe", "distmult"), dpkge.MODELS) for r in REGIMES]

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        graph = graphs["fb15k-237"]
        return {
            f"{model} {regime}": dpkge.job(
                str(graph.source),
                graph,
                regime,
                model,
                dpkge.half(0),
                epochs=scale.length(10),
            )
            for model, regime in self._cases(scale)
        }

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows = []
        for model, regime in self._cases(scale):
            for line in results[f"{model} {regime}"]["trace"]:
                losses = [value for value in (line["loss"], line["private_loss"]) if value]
                rows.append(
                    {
                        "model": model,
                        "regime": regime,
                        "epoch": line["epoch"],
                        "loss": dpkge.mean(losses) if losses else None,
                        "epsilon": line["epsilon"],
                    }
                )
        return rows

    def picture(self, rows: Sequence[Row]) -> str | None:
        cases = dict.fromkeys((row["model"], row["regime"]) for row in rows)
        series = {
            f"{model}, {regime}": [
                (row["epoch"], row["loss"])
                for row in rows
                if (row["model"], row["regime"]) == (model, regime) and row["loss"] is not None
            ]
            for model, regime in cases
        }
        return lines(series, "epochs", "loss", "Loss over epochs of every model in every regime")


EXPERIMENTS = (Losses(),)
