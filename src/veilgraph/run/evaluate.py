"""How good a run is: filtered ranks and their summaries, and answers by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilgraph import machine
from veilgraph.errors import InputError
from veilgraph.layout import METRICS
from veilgraph.rank.metrics import apart, by_class, by_novelty, by_relation, mapping_classes, summarise
from veilgraph.rank.popularity import WHOLE, popularity
from veilgraph.rank.ranking import Ranker, Ranks
from veilgraph.run.measured import about, remember

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph
    from veilgraph.run.run import Run


def evaluate(
    run: Run,
    split: str = "test",
    *,
    graph: str | Path | Graph | None = None,
    memory: int = 1 << 28,
    details: bool = False,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """split, mrr, mr, adjusted_mrr, hits@1/3/10, queries, queries_per_second; with ``details`` also per relation and class.

    Ranks each statement of the split on both sides among all entities, other known statements left out, ties at their
    average rank; on a marked graph also apart for confidential and unrestricted statements, beside
    what guessing popular answers reaches on them (popular), and where entities are new to training
    by which end is (new_head, new_tail, both_new) and by whether the one asked for is (new_end, known_end). Also written to the run's
    metrics.json, which is for the curator.
    """
    machine.prepare(threads)
    found = run.graph(graph)
    statements = found.split(split)
    if not len(statements):
        raise InputError(
            f"the {split} split of {found.source or 'the graph'} is empty: there is nothing to rank."
        )
    ranker = Ranker(found.triples, len(found.relations))
    parameters, model, both = run.parameters, run.model, bool(run.config.reciprocal)
    began = time.perf_counter()
    ranks = ranker.rank(model, parameters, statements, reciprocal=both, memory=memory, progress=progress)
    seconds = time.perf_counter() - began
    result: dict[str, Any] = {
        "split": split,
        **summarise(ranks.rank, ranks.candidates),
        "queries": len(ranks.rank),
        "queries_per_second": round(len(ranks.rank) / seconds, 1),
    }
    result |= _marked(ranks, found, split)
    result |= by_novelty(ranks, found.train, len(found.entities))
    if details:
        result["relations"] = by_relation(ranks, list(found.relations))
        result["classes"] = by_class(ranks, mapping_classes(found.train, len(found.relations)))
    remember(run, METRICS, about(run, found, split=split), result)
    return result


def _marked(ranks: Ranks, graph: Graph, split: str) -> dict[str, Any]:
    """Figures apart by marks, and what popular answers reach: what any model must beat, on confidential statements too."""
    secret = graph.secret(split)
    if not secret.any():
        return {}
    affordable = len(graph.relations) * len(graph.entities) <= WHOLE
    return {**apart(ranks, secret), **({"popular": popularity(graph, split)} if affordable else {})}
