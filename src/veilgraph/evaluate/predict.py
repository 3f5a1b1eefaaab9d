"""The best answers to a question by name: one matrix product and an exact top-k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from veilgraph.errors import UsageError
from veilgraph.evaluate.scoring import score_all

if TYPE_CHECKING:
    from veilgraph.runs import Run


def predict(
    run: Run, head: str | None, relation: str, tail: str | None, *, top: int = 10, known: bool = False
) -> list[dict[str, Any]]:
    """``[{entity, score, rank}]`` for (head, relation, ?) or (?, relation, tail), best first.

    Facts that the graph already holds are left out, if the graph is at hand, unless ``known``.
    """
    if (head is None) == (tail is None):
        raise UsageError("ask for one side: give a head and a relation, or a relation and a tail.")
    if top < 1:
        raise UsageError(f"top must be at least 1, found {top}.")
    side, source = ("tail", head) if head is not None else ("head", tail)
    source_id, relation_id = run.entities.id(str(source)), run.relations.id(relation)
    parameters, model = run.parameters, run.model
    scores = score_all(
        model,
        parameters,
        torch.tensor([source_id]),
        torch.tensor([relation_id]),
        side=side,
        reciprocal=bool(run.config.reciprocal),
    )[0]
    if not known and run.known is not None:
        answers = run.known.answers[side]
        first, last = answers.spans(np.array([source_id]), np.array([relation_id]))
        scores[torch.from_numpy(answers.answers[first[0] : last[0]])] = -torch.inf
    best = torch.topk(scores, min(top, len(scores)))
    found = torch.isfinite(best.values)
    names = run.entities.names(best.indices[found].numpy())
    values = best.values[found].tolist()
    return [{"entity": n, "score": v, "rank": i + 1} for i, (n, v) in enumerate(zip(names, values))]
