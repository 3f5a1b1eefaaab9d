"""DPKGE, Figure 6 (ranks of members and of matched non-members, beside a control) and Tables 10 and 11 (neighbouring graphs, many)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import stats

from veilgraph.attack.membership.curve import measure
from veilgraph.load import Graph
from veilgraph.rank.metrics import interval
from veilgraph_experiments import dpkge
from veilgraph_experiments.experiment import Experiment, Results, Row, Scale
from veilgraph_experiments.job import Job

REGIMES = ("no privacy", "as published", "sound")
CONTROL = "dropped"  # never read a confidential statement: whoever tells members by it sees something else


class Ranks(Experiment):
    """Confidential members against held-out statements like them: without a control a rank says nothing."""

    name = "dpkge-figure6"
    title = "DPKGE, Figure 6: tail ranks of confidential statements and of matched non-members (TransE, FB15k-237)"
    data = ("fb15k-237",)
    paper = ({"regime": "no privacy against as published", "mann_whitney_p": 8.28e-44, "control": "none"},)

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        graph = graphs["fb15k-237"]
        return {
            regime: dpkge.job(
                str(graph.source),
                graph,
                regime,
                "transe",
                dpkge.half(0),
                sigma=1.0,
                epochs=scale.length(10),
                measures=("ranks",),
                count=1000,
            )
            for regime in (*REGIMES, CONTROL)
        }

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows = []
        for regime in (*REGIMES, CONTROL):
            found = results[regime]["ranks"]
            inside, outside = (np.array(found[key]) for key in ("members", "non_members"))
            test = stats.mannwhitneyu(inside, outside, alternative="less")
            ranked, member = np.concatenate([inside, outside]), np.repeat([True, False], len(inside))
            attacked = measure(-ranked, member)
            rows.append(
                {
                    "regime": "never read (control)" if regime == CONTROL else regime,
                    "median_rank_members": float(np.median(inside)),
                    "median_rank_non_members": float(np.median(outside)),
                    "auc": attacked["auc"],
                    "auc_interval": attacked["auc_interval"],
                    "pairs": len(inside),
                    "mann_whitney_p": float(test.pvalue),
                    "epsilon": results[regime]["epsilon"],
                }
            )
        return rows


class Neighbours(Experiment):
    """A statement's rank with and without it in the graph: many statements, not three, and with intervals."""

    name = "dpkge-table11"
    title = "DPKGE, Tables 10 and 11: ranks on neighbouring graphs (TransE, eICU demo; the paper: three pairs of FB15k)"
    data = ("eicu",)
    paper = (
        {"statement": 1, "regime": "no privacy", "rank_with": 2, "rank_without": 9},
        {"statement": 2, "regime": "no privacy", "rank_with": 1, "rank_without": 7},
        {"statement": 3, "regime": "no privacy", "rank_with": 2, "rank_without": 16},
        {"statement": 1, "regime": "as published", "rank_with": 2, "rank_without": 2},
        {"statement": 2, "regime": "as published", "rank_with": 7, "rank_without": 6},
        {"statement": 3, "regime": "as published", "rank_with": 11, "rank_without": 10},
    )

    def _chosen(self, graph: Graph, scale: Scale) -> list[int]:
        total = dpkge.count(graph, None)
        return [int(i) for i in np.random.default_rng(0).choice(total, scale.pick(4, 30), replace=False)]

    def jobs(self, graphs: Mapping[str, Graph], scale: Scale) -> dict[str, Job]:
        graph = graphs["eicu"]
        secret = graph.train[graph.secret("train")]
        jobs: dict[str, Job] = {}
        for regime in REGIMES:
            for place in self._chosen(graph, scale):
                statement = [int(v) for v in secret[place]]
                base = dpkge.job(
                    str(graph.source), graph, regime, "transe", None, epochs=scale.length(30), measures=("one_rank",),
                    statements=statement,
                )  # fmt: skip
                jobs[f"{regime} {place} with"] = base
                jobs[f"{regime} {place} without"] = Job(
                    base.graph, base.settings, base.marks, base.measures, place, base.more
                )
        return jobs

    def rows(self, graphs: Mapping[str, Graph], scale: Scale, results: Results) -> list[Row]:
        rows = []
        for regime in REGIMES:
            pairs = np.array(
                [
                    [results[f"{regime} {place} {kind}"]["rank"][0] for kind in ("with", "without")]
                    for place in self._chosen(graphs["eicu"], scale)
                ],
                float,
            )
            change = np.log2(pairs[:, 1] / pairs[:, 0])
            rows.append(
                {
                    "regime": regime,
                    "pairs": len(pairs),
                    "median_rank_with": float(np.median(pairs[:, 0])),
                    "median_rank_without": float(np.median(pairs[:, 1])),
                    "mean_log2_change": float(change.mean()),
                    "mean_log2_change ±": interval([float(c) for c in change]),
                    "epsilon": results[f"{regime} {self._chosen(graphs['eicu'], scale)[0]} with"]["epsilon"],
                }
            )
        return rows


EXPERIMENTS = (Ranks(), Neighbours())
