"""The best answers to a question by name, or about something described: one matrix product and an exact top-k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from veilgraph.errors import ConfigError, UsageError
from veilgraph.rank.scoring import score_all
from veilgraph.run.describe import with_described

if TYPE_CHECKING:
    from veilgraph.run.run import Run

DESCRIBED = "(described)"  # what an entity without a name is called in answers


def predict(
    run: Run,
    head: str | None,
    relation: str,
    tail: str | None,
    *,
    describe: str | None = None,
    top: int = 10,
    known: bool = False,
) -> list[dict[str, Any]]:
    """``[{entity, score, rank}]`` for (head, relation, ?) or (?, relation, tail), best first.

    ``describe`` is a text about an entity that was never in the graph: it stands for the side that is «(described)», and where both
    sides of a question are given otherwise it is among the answers, at its own rank. Facts that the graph already holds are left out,
    if the graph is at hand, unless ``known``.
    """
    if (head is None) == (tail is None):
        raise UsageError("ask for one side: give a head and a relation, or a relation and a tail.")
    if top < 1:
        raise ConfigError(f"top must be at least 1, found {top}.")
    side, source = ("tail", head) if head is not None else ("head", tail)
    if source == DESCRIBED and describe is None:
        raise UsageError(f"{DESCRIBED} stands for an entity that a text describes: give the text too.")
    parameters, new = run.parameters, len(run.entities)
    if describe is not None:
        parameters = with_described(run, describe)
    asks = source == DESCRIBED
    source_id, relation_id = new if asks else run.entities.id(str(source)), run.relations.id(relation)
    scores = score_all(
        run.model,
        parameters,
        torch.tensor([source_id]),
        torch.tensor([relation_id]),
        side=side,
        reciprocal=bool(run.config.reciprocal),
    )[0]
    if asks:
        scores[new] = -torch.inf  # itself
    elif not known:
        _leave_out_known(run, scores, side, source_id, relation_id)
    out = _best(run, scores, top)
    if describe is not None and not asks and all(one["entity"] != DESCRIBED for one in out):
        own = float(scores[new])
        out.append({"entity": DESCRIBED, "score": own, "rank": int((scores > own).sum()) + 1})
    return out


def _best(run: Run, scores: Tensor, top: int) -> list[dict[str, Any]]:
    """The largest scores with their names; what comes after all names is «(described)»."""
    best, new = torch.topk(scores, min(top, len(scores))), len(run.entities)
    found = torch.isfinite(best.values)
    ids, values = best.indices[found], best.values[found].tolist()
    names = [*run.entities.names(ids[ids < new].numpy())]
    for place in torch.nonzero(ids == new).flatten().tolist():
        names.insert(place, DESCRIBED)
    return [{"entity": n, "score": v, "rank": i + 1} for i, (n, v) in enumerate(zip(names, values))]


def _leave_out_known(run: Run, scores: Tensor, side: str, source: int, relation: int) -> None:
    """Facts that the graph already holds are no answers, if the graph is at hand."""
    if run.known is None:
        return
    answers = run.known.answers[side]
    first, last = answers.spans(np.array([source]), np.array([relation]))
    scores[torch.from_numpy(answers.answers[first[0] : last[0]])] = -torch.inf
