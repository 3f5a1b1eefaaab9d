"""Federated embeddings, Table 3: what clients reach alone, together, in one place, and under a promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veilgraph.load import Graph
from veilgraph.rank.metrics import interval
from veilgraph_experiments import fkge
from veilgraph_experiments.dpkge import mean
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

OPEN = {"alone": "alone", "federated": "fede", "in one place": "together"}
SOUND = ("counts", "dpsgd", "adafest", "select")
RAW = "each client's raw counts"
COLUMNS = ("setting", "epsilon", "transe", "rotate", "distmult", "complex")
PAPER = {
    "fb15k-237": (
        ("FKGE", None, 0.3606, 0.3676, 0.3138, 0.3010), ("DP-SGD", 16, 0.1296, 0.0506, 0.0069, 0.0067),
        ("DP-FLames", 16, 0.1843, 0.0901, 0.2342, 0.2638), ("DP-FLames-Adp", 16, 0.3193, 0.2946, 0.2764, 0.2874),
        ("DP-SGD", 32, 0.1248, 0.0371, 0.0084, 0.0078), ("DP-FLames", 32, 0.2964, 0.2740, 0.2881, 0.2784),
        ("DP-FLames-Adp", 32, 0.3239, 0.3044, 0.2728, 0.2850),
    ),
    "nell-995": (
        ("FKGE", None, 0.6866, 0.7299, 0.4120, 0.3685), ("DP-SGD", 16, 0.1516, 0.0265, 0.0001, 0.0001),
        ("DP-FLames", 16, 0.1419, 0.0151, 0.1975, 0.3340), ("DP-FLames-Adp", 16, 0.4687, 0.3822, 0.3745, 0.3620),
        ("DP-SGD", 32, 0.1076, 0.0169, 0.0002, 0.0003), ("DP-FLames", 32, 0.3589, 0.1099, 0.3786, 0.3747),
        ("DP-FLames-Adp", 32, 0.4814, 0.5031, 0.3912, 0.3569),
    ),
}  # fmt: skip


class Utility(Experiment):
    """Relations divided over three clients; MRR under FedE's protocol (tails, own entities) and ours (both sides, all entities)."""

    name = "fkge-table3"
    title = "Federated embeddings, Table 3"

    def __init__(self, name: str, data: str, title: str) -> None:
        self.name, self.data, self.title = name, (data,), title  # type: ignore[misc]
        self.paper = [dict(zip(COLUMNS, row, strict=True)) for row in PAPER[data]]

    def _cases(self, scale: Scale) -> list[tuple[str, str, int]]:
        models = scale.pick(("transe", "distmult"), fkge.MODELS)
        settings = (*OPEN, *scale.pick(("counts", "dpsgd"), SOUND))
        seeds = range(1, 1 + scale.pick(1, scale.seeds))
        every = [(model, setting, seed) for seed in seeds for model in models for setting in settings]
        return [*every, *(("none", RAW, seed) for seed in seeds)]

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        source, made = str(graphs[self.data[0]].source), {}
        for case in self._cases(scale):
            model, setting, seed = case
            if setting == RAW:
                made[f"{case}"] = fkge.job(source, "counts", seed, by="relation", own=fkge.own("counts"))
                continue
            defence = "none" if setting in OPEN else setting
            sparse = self.data[0] == "nell-995"
            terms = fkge.terms(model, OPEN.get(setting, "fede"), quick=scale.quick, sparse=sparse)
            if defence == "counts":
                terms = {
                    **terms,
                    "rounds": 1,
                    "local_epochs": 1,
                    "own_epochs": 0,
                }  # nothing is learnt in rounds
            made[f"{case}"] = fkge.job(
                source, "federation", seed, by="relation", own=fkge.own(defence), terms=terms
            )
        return made

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows: list[Row] = []
        for model, setting in dict.fromkeys((m, s) for m, s, _ in self._cases(scale)):
            same = [results[f"{case}"] for case in self._cases(scale) if case[:2] == (model, setting)]
            rows.append({"model": model, "setting": setting, **_figures(same)})
        return rows


def _figures(same: Sequence[Mapping[str, Any]]) -> Row:
    row: Row = {}
    for protocol in ("fede", "shared"):
        for key in ("mrr", "hits@1", "hits@10"):
            values = [float(one["protocols"][protocol][key]) for one in same]
            row[f"{key} {protocol}"], row[f"{key} {protocol} ±"] = mean(values), interval(values)
    spent = [one["epsilon"] for one in same]
    row["epsilon"] = None if any(value is None for value in spent) else max(spent)
    row["seeds"] = len(same)
    return row


EXPERIMENTS = (
    Utility("fkge-table3", "fb15k-237", "Federated embeddings, Table 3: FB15k-237 in three clients"),
    Utility("fkge-table3-nell", "nell-995", "Federated embeddings, Table 3: NELL-995 in three clients"),
)
