"""The baseline any model must beat: guess the entities that answer a relation most often."""

from __future__ import annotations

from typing import Any

import numpy as np

from veilgraph.load.graph import Graph
from veilgraph.models import score_kernels
from veilgraph.rank.answers import Answers
from veilgraph.rank.metrics import apart, summarise
from veilgraph.rank.ranking import Ranks

WHOLE = 50_000_000  # cells of a table of counts: up to here popular answers are ranked, for comparison


def popularity(graph: Graph, split: str = "test") -> dict[str, Any]:
    """The metrics of ranking candidates by their number of training statements with the relation, on that side; also apart by marks."""
    ranks = popular_ranks(graph, split)
    return {**summarise(ranks.rank, ranks.candidates), **apart(ranks, graph.secret(split))}


def popular_ranks(graph: Graph, split: str = "test") -> Ranks:
    """The ranks themselves: all statements of the split by their tails, then by their heads."""
    ranks, candidates = [], []
    triples = graph.split(split).astype(np.int64)
    for side, source, target in (("tail", 0, 2), ("head", 2, 0)):
        counts = np.zeros((len(graph.relations), len(graph.entities)), np.float32)
        np.add.at(counts, (graph.train[:, 1], graph.train[:, target]), 1)
        answers = Answers.of(graph.triples, len(graph.relations), side=side)
        first, last = answers.spans(triples[:, source], triples[:, 1])
        above, same = np.empty(len(triples), np.int64), np.empty(len(triples), np.int64)
        relation, wanted = (np.ascontiguousarray(triples[:, column]) for column in (1, target))
        score_kernels.count_better(counts, relation, wanted, first, last, answers.answers, above, same)
        ranks.append(1 + above + same / 2)
        candidates.append(len(graph.entities) - (last - first) + 1)
    sides = np.repeat(np.array(["tail", "head"]), len(triples))
    return Ranks(np.concatenate([triples] * 2), sides, np.concatenate(ranks), np.concatenate(candidates))
