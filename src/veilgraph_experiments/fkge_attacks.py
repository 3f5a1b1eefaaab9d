"""Federated embeddings, Table 2 and Figures 3 and 5: what attackers learn from messages, without and with a defence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veilgraph.load import Graph
from veilgraph.pictures import lines
from veilgraph.rank.metrics import interval
from veilgraph_experiments import fkge
from veilgraph_experiments.dpkge import mean
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

KINDS = ("passive", "active", "server", "collusion", "published")
ROUNDS, LOCAL = 10, 3
QUICKLY = 0.02  # step size of distances: ten rounds are few, and attackers hear of what was learnt
EVERY = {False: 2, True: 5}  # rounds between looks, and between reversed tails (the paper's)
TARGETS = 1000
PAPER = {
    "fb15k-237": {
        "passive": (0.724, 0.8211, 0.7809, 0.7749), "active": (0.8779, 0.8403, 0.7346, 0.7949),
        "server": (0.878, 0.7827, None, None),
    },
    "nell-995": {
        "passive": (0.8243, 0.8728, 0.8686, 0.8429), "active": (0.8817, 0.8462, 0.7337, 0.7848),
        "server": (0.9023, 0.748, None, None),
    },
}  # fmt: skip


def listening(graph: Graph, model: str, defence: str, active: bool, seed: int, *, quick: bool) -> Job:
    """A federation of three clients, divided by entity, with statements planted at one of them."""
    terms = fkge.terms(model, "fede", quick=quick)
    terms |= {"rounds": 4 if quick else ROUNDS, "local_epochs": LOCAL, "own_epochs": 0, "server_step": 1.0}
    if model in ("transe", "rotate"):
        terms["training"] = {**terms["training"], "learning_rate": QUICKLY}
    return fkge.job(
        str(graph.source),
        "listening",
        seed,
        by="entity",
        own=fkge.own(defence),
        terms=terms,
        active=active,
        every=EVERY[active] if not quick else 2,
        targets=TARGETS,
    )


class Attacks(Experiment):
    """500 planted statements against 500 that are not: every attack, on every model."""

    name = "fkge-table2"
    title = "Federated embeddings, Table 2"

    def __init__(self, name: str, data: str, title: str) -> None:
        self.name, self.data, self.title = name, (data,), title  # type: ignore[misc]
        self.paper = [
            {"attack": kind, **dict(zip(fkge.MODELS, values, strict=True))}
            for kind, values in PAPER[data].items()
        ]

    defences: tuple[str, ...] = ("none",)

    def _models(self, scale: Scale) -> tuple[str, ...]:
        return scale.pick(("transe", "distmult"), fkge.MODELS)  # type: ignore[no-any-return]

    def _cases(self, scale: Scale) -> list[tuple[str, str, bool, int]]:
        seeds = range(1, 1 + scale.pick(1, scale.seeds))
        return [
            (model, defence, active, seed)
            for seed in seeds
            for model in self._models(scale)
            for defence in self.defences
            for active in (False, True)
        ]

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        graph = graphs[self.data[0]]
        return {
            f"{case}": listening(graph, case[0], case[1], case[2], case[3], quick=scale.quick)
            for case in self._cases(scale)
        }

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows: list[Row] = []
        for model in self._models(scale):
            for defence in self.defences:
                for kind in KINDS:
                    same = [
                        results[f"{case}"]
                        for case in self._cases(scale)
                        if case[:3] == (model, defence, kind == "active")
                    ]
                    rows.append({"model": model, "defence": defence, "attack": kind, **_figures(same, kind)})
        return rows


def _figures(same: Sequence[Mapping[str, Any]], kind: str) -> Row:
    row: Row = {}
    found = [one["attacks"][kind] for one in same]
    row["sent"] = "nothing" if any(one["nothing_sent"] for one in found) else "rows"
    for key in ("auc", "f1", "best f1 over rounds", "tpr@fpr=0.01"):
        values = [float(one[key]) for one in found if not one["nothing_sent"]]
        row[key] = mean(values) if values else None
        row[f"{key} ±"] = interval(values) if values else None
    row["mrr fede"] = mean([float(one["protocols"]["fede"]["mrr"]) for one in same])
    spent = [one["epsilon"] for one in same]
    row["epsilon"] = None if any(value is None for value in spent) else max(spent)
    row["seeds"] = len(same)
    return row


class Rounds(Attacks):
    """The same federations, round by round: TransE and RotatE."""

    def _models(self, scale: Scale) -> tuple[str, ...]:
        return ("transe",) if scale.quick else ("transe", "rotate")

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows: list[Row] = []
        for case in self._cases(scale):
            for kind, found in results[f"{case}"]["attacks"].items():
                for line in found["rounds"]:
                    rows.append({"model": case[0], "attack": kind, "seed": case[3], **_line(line)})
        return rows

    def picture(self, rows: Sequence[Row]) -> str | None:
        first = min(row["seed"] for row in rows)
        own = [row for row in rows if row["seed"] == first]
        series = {
            f"{model}, {kind}": [
                (row["round"], row["f1"]) for row in own if (row["model"], row["attack"]) == (model, kind)
            ]
            for model, kind in dict.fromkeys((row["model"], row["attack"]) for row in own)
        }
        return lines(series, "rounds", "F1", "F1 of every attack over the rounds of a federation")


def _line(line: Mapping[str, Any]) -> Row:
    return {key: line[key] for key in ("round", "auc", "f1", "tpr@fpr=0.01")}


class Defended(Attacks):
    """The same attacks, and the federation's MRR, under every defence at ε = 8."""

    defences = ("none", "counts", "dpsgd", "adafest")

    def _models(self, scale: Scale) -> tuple[str, ...]:
        return scale.pick(("transe",), ("transe", "distmult"))  # type: ignore[no-any-return]

    def picture(self, rows: Sequence[Row]) -> str | None:
        series = {
            f"{model}, {defence}": [
                (row["mrr fede"], row["auc"])
                for row in rows
                if (row["model"], row["defence"]) == (model, defence) and row["auc"] is not None
            ]
            for model, defence in dict.fromkeys((row["model"], row["defence"]) for row in rows)
        }
        return lines(
            series, "MRR (FedE's protocol)", "AUC of attacks", "What defences cost and what they keep"
        )


EXPERIMENTS = (
    Attacks("fkge-table2", "fb15k-237", "Federated embeddings, Table 2: attacks on FB15k-237"),
    Attacks("fkge-table2-nell", "nell-995", "Federated embeddings, Table 2: attacks on NELL-995"),
    Rounds("fkge-figure3", "fb15k-237", "Federated embeddings, Figure 3: attacks round by round, FB15k-237"),
    Defended(
        "fkge-figure5",
        "fb15k-237",
        "Federated embeddings, Figure 5: utility against defence, FB15k-237, ε = 8",
    ),
)
