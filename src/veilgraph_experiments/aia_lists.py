"""Attribute inference from recommendations, Table 1: everybody a target, stronger attackers, more sanitisers, both regimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veilgraph.attack.attribute import REGIMES
from veilgraph.attack.attribute.frontier import STRENGTHS, picture
from veilgraph.load import Graph
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

RELATION, ITEMS = "watched", "movie/"
RIDGE, COMPLEX = "item ridge", "complex"
TRAINING = {"model": "complex", "dimension": 64, "epochs": 10, "drop_confidential": True}
FEW: Mapping[bool, Mapping[str, tuple[str, ...]]] = {
    True: {
        "random": ("random:keep=9", "random:keep=7", "random:keep=3"),
        "balanced": ("balanced", "balanced:blend=0.3", "balanced:blend=0.5"),
        "balanced, flattened": ("balanced:blend=0.4;flatten=0.4",),
    },
    False: {
        "random": ("random:keep=9", "random:keep=7", "random:keep=3"),
        "balanced": ("balanced",),
        "balanced, then random": (
            "balanced,random:keep=9",
            "balanced,random:keep=7",
            "balanced,random:keep=3",
        ),
    },
}
FIVE = {
    "random": tuple(f"random:keep={keep}" for keep in (3, 2, 1, 0)),
    "shuffled, then random": tuple(f"shuffle,random:keep={keep}" for keep in (5, 3, 2, 1)),
}
ROTATED = {
    "random": ("random:keep=7", "random:keep=3"),
    "balanced, flattened": ("balanced:blend=0.4;flatten=0.4",),
}
PAPER_COLUMNS = {
    5: ("Top", "t3-r2", "t2-r3", "t1-r4", "Rand"),
    10: ("Top", "t7-r3", "t5-r5", "t3-r7", "Rand"),
}
PAPER = {  # dataset, K: I_u, I_u shuffled, Q_u, Q_u shuffled
    ("Yahoo Movies", 5): (
        (0.70, 0.67, 0.65, 0.61, 0.52), (0.68, 0.64, 0.60, 0.60, None),
        (1.0, 0.74, 0.61, 0.47, 0.32), (0.96, 0.70, 0.58, 0.45, None),
    ),
    ("Yahoo Movies", 10): (
        (0.71, 0.69, 0.68, 0.66, 0.51), (0.70, 0.67, 0.67, 0.64, None),
        (1.0, 0.81, 0.68, 0.55, 0.34), (1.0, 0.80, 0.67, 0.53, None),
    ),
    ("MovieLens-100K", 5): (
        (0.63, 0.61, 0.61, 0.57, 0.53), (0.64, 0.59, 0.59, 0.57, None),
        (1.0, 0.81, 0.71, 0.62, 0.51), (0.98, 0.79, 0.69, 0.61, None),
    ),
    ("MovieLens-100K", 10): (
        (0.71, 0.65, 0.60, 0.57, 0.52), (0.65, 0.61, 0.61, 0.59, None),
        (1.0, 0.86, 0.77, 0.67, 0.52), (1.0, 0.85, 0.76, 0.67, None),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One recommender, one secret, one regime, one attacker with some knowledge; all seeds of it become one row a chain."""

    recommender: str = RIDGE
    attribute: str = "gender"
    repeat: bool = True
    top: int = 10
    knowledge: str = "lists"
    attacker: str = "best"
    chains: str = "few"  # see CHAINS


CHAINS: Mapping[str, Mapping[bool, Mapping[str, tuple[str, ...]]]] = {
    "few": FEW,
    "all": STRENGTHS,
    "five": {True: FIVE, False: FIVE},
    "rotated": {True: ROTATED, False: ROTATED},
    "two": {
        True: {"random": ("random:keep=7",), "balanced, flattened": ("balanced:blend=0.4;flatten=0.4",)},
        False: {"random": ("random:keep=7",), "balanced": ("balanced",)},
    },
}


class Lists(Experiment):
    """MovieLens-100K, latest tenth of everybody's films for NDCG; the paper: 54 targets a run, one attacker, gender."""

    name = "aia-table1"
    title = "Attribute inference from lists, Table 1: attack success and utility by sanitiser (MovieLens-100K, all 943 users)"
    data = ("movielens-100k",)
    paper = tuple(
        {
            "dataset": dataset,
            "top": top,
            "list": column,
            "i_u": values[0][i],
            "i_u shuffled": values[1][i],
            "q_u": values[2][i],
            "q_u shuffled": values[3][i],
        }
        for (dataset, top), values in PAPER.items()
        for i, column in enumerate(PAPER_COLUMNS[top])
    )

    def cases(self, scale: Scale) -> list[Case]:
        """What is done; a quick look is at gender, one recommender and a few sanitisers."""
        regimes = (True, False)
        if scale.quick:
            return [Case(repeat=repeat) for repeat in regimes]
        return [
            *(Case(repeat=repeat, chains="all") for repeat in regimes),
            *(Case(repeat=repeat, top=5, chains="five") for repeat in regimes),
            *(
                Case(attribute=name, repeat=repeat)
                for name in ("age_group", "occupation")
                for repeat in regimes
            ),
            *(Case(recommender=COMPLEX, repeat=repeat) for repeat in regimes),
            *(
                Case(repeat=repeat, knowledge=level, chains="two")
                for level in ("items", "people", "history")
                for repeat in regimes
            ),
            Case(attacker="rotate", chains="rotated"),
        ]

    def _seeds(self, case: Case, scale: Scale) -> range:
        return range(1 if scale.quick or case.attacker == "rotate" else scale.seeds)

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        source = str(graphs["movielens-100k"].source)
        return {
            f"{case} {seed}": Job(
                source,
                {**TRAINING, "epochs": scale.epochs or TRAINING["epochs"], "seed": seed}
                if case.recommender == COMPLEX
                else None,
                measures=("lists",),
                more={
                    **asdict(case),
                    "chains": {
                        family: list(words) for family, words in CHAINS[case.chains][case.repeat].items()
                    },
                    "relation": RELATION,
                    "listed": ITEMS,
                    "seed": seed,
                },
            )
            for case in self.cases(scale)
            for seed in self._seeds(case, scale)
        }

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows: list[Row] = []
        for case in self.cases(scale):
            by_seed = [results[f"{case} {seed}"]["points"] for seed in self._seeds(case, scale)]
            for same in zip(*by_seed):
                rows.append({**_about(case), **_over_seeds(same)})
        return rows

    def pictures(self, rows: Sequence[Row]) -> dict[str, str]:
        main = {"recommender": RIDGE, "attribute": "gender", "top": 10, "knowledge": "lists"}
        out: dict[str, str] = {}
        for repeat, end in ((True, ""), (False, "-new")):
            own = [
                row
                for row in rows
                if row["lists"] == REGIMES[repeat]
                and row["attackers"] == "best"
                and all(row[key] == value for key, value in main.items())
            ]
            out |= {f"figure{end}": picture(own), f"figure{end}-ndcg": picture(own, "ndcg")}
        return out


def _about(case: Case) -> Row:
    return {
        "recommender": case.recommender,
        "attribute": case.attribute,
        "lists": REGIMES[case.repeat],
        "top": case.top,
        "knowledge": case.knowledge,
        "attackers": case.attacker,
    }


def _over_seeds(same: Sequence[Mapping[str, Any]]) -> Row:
    """Means over seeds; ± is half of a 95 % interval over people (of one seed: the same people are in all)."""
    first = same[0]
    row: Row = {
        key: first[key] for key in ("family", "sanitiser", "attribute", "targets", "majority", "coin")
    }
    for key in ("strongest", "balanced_accuracy", "accuracy", "auc", "q_u", "ndcg", "ndcg_original"):
        row[key] = float(np.mean([one[key] for one in same]))
    spread = [one["strongest_interval"][1] - one["strongest_interval"][0] for one in same]
    row["strongest ±"] = float(np.mean(spread)) / 2
    row["seeds"] = len(same)
    row |= {key: float(np.mean([one[key] for one in same])) for key in first if key.startswith("by ")}
    return row


EXPERIMENTS = (Lists(),)
