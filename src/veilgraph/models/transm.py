"""TransM: TransE with a weight per relation."""

from __future__ import annotations

import numpy as np
import torch

from veilgraph.models.transe import TransE


class TransM(TransE):
    """TransE whose distance counts less for relations with many tails per head or heads per tail."""

    name = "transm"
    formula = "−w_r · ‖h + r − t‖,  w_r = 1 / log(tails per head + heads per tail)"
    citation = (
        "Fan et al. 2014, Transition-based knowledge graph embedding with relational mapping properties"
    )

    def prepare(self, triples: np.ndarray, relations: int) -> None:
        """Count *distinct* heads and tails of each relation.

        Example: (a r x), (a r y), (b r x) has 3 statements, 2 heads, 2 tails: w = 1 / log(1.5 + 1.5) = 0.91.
        """
        self.relation_scale = torch.from_numpy(mapping_weights(triples, relations))


def mapping_weights(triples: np.ndarray, relations: int) -> np.ndarray:
    """w_r for every relation; 1 for a relation without statements. A 1-1 relation has weight 1 / log 2."""
    statements, heads, tails = distinct_counts(triples, relations)
    spread = statements / np.maximum(heads, 1) + statements / np.maximum(tails, 1)
    return np.where(statements > 0, 1 / np.log(np.maximum(spread, 2)), 1.0).astype(np.float32)


def distinct_counts(triples: np.ndarray, relations: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many distinct statements, heads and tails each relation has."""
    if not len(triples):
        return (np.zeros(relations, np.int64),) * 3
    distinct = np.unique(triples, axis=0)
    statements = np.bincount(distinct[:, 1], minlength=relations)
    heads = np.bincount(np.unique(distinct[:, [0, 1]], axis=0)[:, 1], minlength=relations)
    tails = np.bincount(np.unique(distinct[:, [2, 1]], axis=0)[:, 1], minlength=relations)
    return statements, heads, tails
