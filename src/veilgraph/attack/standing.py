"""How a model sees a statement: its log-probability and its rank on one side."""

from __future__ import annotations

import torch
from torch import Tensor

from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rank.scoring import score_all

CHUNK = 512
COLUMNS = {"tail": (0, 2), "head": (2, 0)}


def standing(
    model: Model, p: Parameters, statements: Tensor, side: str, reciprocal: bool
) -> tuple[Tensor, Tensor]:
    """Log-probability and rank (1 is best, unfiltered) of each statement ``[n, 3]`` among all entities."""
    source, target = COLUMNS[side]
    log, rank = torch.empty(len(statements)), torch.empty(len(statements))
    for begin in range(0, len(statements), CHUNK):
        part = statements[begin : begin + CHUNK]
        scores = score_all(model, p, part[:, source], part[:, 1], side=side, reciprocal=reciprocal)
        answer = part[:, target : target + 1]
        log[begin : begin + CHUNK] = torch.log_softmax(scores, 1).gather(1, answer).squeeze(1)
        rank[begin : begin + CHUNK] = 1 + (scores > scores.gather(1, answer)).sum(1)
    return log, rank
