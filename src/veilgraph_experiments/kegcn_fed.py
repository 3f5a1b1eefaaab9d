"""Fed-KE-GCN: does sharing bases help, and does transport add anything to averaging? Labels on AIFB and WN18, links on FB15k-237."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veilgraph.load import Graph
from veilgraph.rank.metrics import interval
from veilgraph_experiments.dpkge import mean
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "single": ("kegcn-alone", {}),
    "federated": ("fedkegcn", {}),
    "federated, sorted": ("fedkegcn", {"transport": "sorted", "transport_weight": 1.0}),
    "federated, sinkhorn": ("fedkegcn", {"transport": "sinkhorn", "transport_weight": 1.0}),
}
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SCORES = ("transe", "distmult", "rotate")


class Together(Experiment):
    """The same division for every setting of a seed: differences are paired."""

    title = ""

    def __init__(
        self, name: str, data: str, title: str, sizes: Sequence[int], terms: Mapping[str, Any], more: Any
    ) -> None:
        self.name, self.data, self.title = name, (data,), title  # type: ignore[misc]
        self.sizes, self.terms, self.more = sizes, terms, more
        self.paper = more.get("paper", ())

    def _cases(self, scale: Scale) -> list[tuple[int, str, str]]:
        scores = scale.pick(("distmult",), self.more["scores"])
        settings = scale.pick(("single", "federated"), self.more["settings"])
        return [
            (clients, score, setting)
            for clients in scale.pick(self.sizes[:1], self.sizes)
            for score in scores
            for setting in settings
        ]

    def _seeds(self, scale: Scale) -> range:
        return range(scale.pick(1, scale.seeds))

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        made, source = {}, str(graphs[self.data[0]].source)
        for case in self._cases(scale):
            clients, score, setting = case
            strategy, transport = SETTINGS[setting]
            training = {**self.terms["training"], "encoder_score": score, **transport}
            rounds = 2 if scale.quick else self.terms["rounds"]
            terms = {
                **self.terms,
                "strategy": strategy,
                "rounds": rounds,
                "validate_every": 0,
                "training": training,
            }
            for seed in self._seeds(scale):
                more = {"clients": clients, "seed": seed, "own": {}, "terms": terms, **self.more["division"]}
                made[f"{case} {seed}"] = Job(source, None, measures=("federation",), more=more)
        return made

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows: list[Row] = []
        for case in self._cases(scale):
            values = self._values(case, scale, results)
            single = self._values((case[0], case[1], "single"), scale, results)
            gains = [after - before for after, before in zip(values, single, strict=True)]
            memory = max(results[f"{case} {seed}"]["peak_megabytes"] for seed in self._seeds(scale))
            found = {
                "clients": case[0],
                "score": case[1],
                "setting": case[2],
                self._what: mean(values),
                "±": interval(values),
            }
            found |= {"gain over single": mean(gains), "gain ±": interval(gains)}
            rows.append({**found, "peak MB": memory, "seeds": len(values)})
        return rows

    @property
    def _what(self) -> str:
        return "accuracy" if self.terms["training"].get("task") == "labels" else "mrr"

    def _values(self, case: tuple[int, str, str], scale: Scale, results: Results) -> list[float]:
        found = [results[f"{case} {seed}"] for seed in self._seeds(scale)]
        if self._what == "accuracy":
            return [100 * float(one["accuracy"]) for one in found]
        return [float(one["protocols"]["shared"]["mrr"]) for one in found]


def _thesis(*accuracy: tuple[float, float, float]) -> list[Row]:
    """Its table: three clients, a single run of each."""
    cases = [(score, setting) for score in SCORES for setting in ("single", "federated, sinkhorn")]
    return [
        {"clients": 3, "score": score, "setting": setting, "accuracy": mean(one), "of clients": one}
        for (score, setting), one in zip(cases, accuracy, strict=True)
    ]


AIFB = _thesis(
    (44.4, 52.8, 69.4), (44.4, 75.0, 77.8), (41.7, 47.2, 61.1), (47.2, 69.4, 63.9), (55.6, 55.6, 63.9), (55.6, 58.3, 63.9)
)  # fmt: skip
WN18 = _thesis(
    (25.8, 18.3, 13.7), (25.2, 17.9, 14.1), (25.9, 19.8, 14.4), (26.3, 20.8, 13.7), (22.4, 15.8, 11.9), (22.5, 16.9, 13.3)
)  # fmt: skip
LABELS: dict[str, Any] = {  # the thesis' settings
    "rounds": 20,
    "local_epochs": 5,
    "training": {
        "model": "distmult", "dimension": 32, "encoder": "kegcn", "encoder_layers": 2, "encoder_bases": 10, "task": "labels",
        "learning_rate": 0.1,
    },
}  # fmt: skip
LINKS: dict[str, Any] = {
    "rounds": 10,
    "local_epochs": 2,
    "training": {
        "model": "distmult",
        "dimension": 32,
        "encoder": "kegcn",
        "encoder_layers": 1,
        "encoder_bases": 50,
    },
}  # fmt: skip
EXPERIMENTS = (
    Together(
        "kegcn-fed",
        "aifb",
        "Fed-KE-GCN: labels of AIFB at 3 and 10 clients",
        (3, 10),
        LABELS,
        {
            "division": {"labels": {"types": TYPE}},
            "scores": SCORES,
            "settings": tuple(SETTINGS),
            "paper": AIFB,
        },
    ),
    Together(
        "kegcn-fed-wn18",
        "wn18-nodeclass",
        "Fed-KE-GCN: labels of WN18 at 3 clients",
        (3,),
        LABELS,
        {
            "division": {"labels": {"types": None}},
            "scores": SCORES,
            "settings": ("single", "federated", "federated, sorted"),
            "paper": WN18,
        },
    ),
    Together(
        "kegcn-fed-links",
        "fb15k-237",
        "Fed-KE-GCN: links of FB15k-237 at 10 clients, 50 bases",
        (10,),
        LINKS,
        {
            "division": {"by": "relation"},
            "scores": ("distmult",),
            "settings": ("single", "federated", "federated, sorted"),
        },
    ),
)
