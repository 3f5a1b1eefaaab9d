"""DP-KE-GCN: what labels are worth under each guarantee, and the thesis' table at its own noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilgraph.load import Graph
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job
from veilgraph_experiments.kegcn_labels import OWN, figures

HALF = {"confidential": 0.5}
DELTA = 1e-5  # the thesis'
OPEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # settings, and what is marked at random
    "no guarantee": ({}, {}),
    "unrestricted only": ({"drop_confidential": True}, HALF),
}
EPSILONS = (8.0, 2.0)
AS_THESIS = (59.0, 171.0)  # the two of its three ε that still say something
FULL = {"sample_rate": 1.0, "steps": 200}  # the thesis': every labelled entity in every step
THESIS = (  # accuracy on FB15k, labels at best, at the ε of T = 200 and δ = 1e-5
    {"epsilon": 12546, "accuracy": 73}, {"epsilon": 171, "accuracy": 24}, {"epsilon": 59, "accuracy": 16},
)  # fmt: skip


class Private(Experiment):
    """Half of WN18's statements are confidential; of the hospital's, those about patients."""

    name = "kegcn-dp"
    title = "DP-KE-GCN: node classification with a guarantee"
    data = ("wn18-apart", "wn18-nodeclass", "hospital-patients")
    paper = THESIS

    def _cases(self, scale: Scale) -> list[tuple[str, str, float | None]]:
        cases: list[tuple[str, str, float | None]] = []
        for graph in scale.pick(("hospital-patients",), self.data):
            cases += [(graph, setting, None) for setting in OPEN]
            for epsilon in EPSILONS:
                cases += [(graph, kind, epsilon) for kind in ("edge", "node", "label", "label, full batch")]
            if graph != "hospital-patients":
                cases.append((graph, "edge, all confidential", 8.0))
            if graph == "wn18-apart":
                cases += [
                    (graph, kind, epsilon) for epsilon in AS_THESIS for kind in ("label", "label, full batch")
                ]
        return cases

    def _seeds(self, scale: Scale, case: tuple[str, str, float | None]) -> range:
        open_network = case[1] == "no guarantee" and case[0] != "hospital-patients"
        return range(scale.pick(1, min(scale.seeds, 3) if open_network else scale.seeds))

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        made = {}
        for case in self._cases(scale):
            graph, setting, epsilon = case
            for seed in self._seeds(scale, case):
                made[f"{case} {seed}"] = Job(
                    str(graphs[graph].source),
                    None,
                    measures=("labels",),
                    more=_more(graph, setting, epsilon, seed),
                )
        return made

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows: list[Row] = []
        for case in self._cases(scale):
            same = [results[f"{case} {seed}"] for seed in self._seeds(scale, case)]
            spent = [one["epsilon"] for one in same]
            epsilon = None if any(value is None for value in spent) else max(spent)
            rows.append(
                {"graph": case[0], "setting": case[1], "asked": case[2], "epsilon": epsilon, **figures(same)}
            )
        for row in rows:
            best = next(
                r["accuracy"] for r in rows if r["graph"] == row["graph"] and r["setting"] == "no guarantee"
            )
            row["of it"] = row["accuracy"] / best
        return rows


def _more(graph: str, setting: str, epsilon: float | None, seed: int) -> dict[str, Any]:
    random = graph != "hospital-patients"
    if epsilon is None:
        settings, marks = OPEN[setting]
        own = OWN[graph] if setting == "no guarantee" else {}
        return {"settings": {**own, **settings}, "seed": seed, **(marks if random else {})}
    kind = setting.split(",")[0]
    settings = {
        "guarantee": kind,
        "epsilon": epsilon,
        "delta": DELTA,
        **(FULL if setting.endswith("full batch") else {}),
    }
    share = (
        {}
        if not random or kind == "label"
        else {"confidential": 1.0}
        if setting.endswith("all confidential")
        else HALF
    )
    return {"settings": settings, "seed": seed, **share}


EXPERIMENTS = (Private(),)
