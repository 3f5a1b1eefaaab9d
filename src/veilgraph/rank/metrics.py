"""Summaries of ranks: mean rank, mean reciprocal rank, hits, and the same adjusted for chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from veilgraph.models.transm import distinct_counts
from veilgraph.rank.ranking import Ranks

CUTOFFS = (1, 3, 10)


def summarise(rank: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
    """mrr, mr, adjusted_mrr, chance_mrr and hits@1/3/10.

    ``adjusted_mrr`` is 0 for random ranking and 1 for perfect ranking: (mrr − chance) / (1 − chance), where the
    expected reciprocal rank among n candidates, ``chance_mrr``, is (1 + 1/2 + … + 1/n) / n.
    """
    if not len(rank):
        return {
            "mrr": 0.0,
            "mr": 0.0,
            "adjusted_mrr": 0.0,
            "chance_mrr": 0.0,
            **{f"hits@{k}": 0.0 for k in CUTOFFS},
        }
    mrr = float((1 / rank).mean())
    n = np.maximum(candidates.astype(float), 1)
    expected = float((harmonic(n) / n).mean())
    adjusted = (mrr - expected) / (1 - expected) if expected < 1 else 0.0
    hits = {f"hits@{k}": float((rank <= k).mean()) for k in CUTOFFS}
    return {"mrr": mrr, "mr": float(rank.mean()), "adjusted_mrr": adjusted, "chance_mrr": expected, **hits}


def harmonic(n: np.ndarray) -> np.ndarray:
    """1 + 1/2 + … + 1/n for each n. Example: harmonic(2) = 1.5."""
    top = int(n.max()) if len(n) else 0
    if top <= 1 << 22:
        return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, top + 1))])[n.astype(np.int64)]
    return np.log(n) + 0.5772156649015329 + 1 / (2 * n)


def apart(ranks: Ranks, secret: np.ndarray) -> dict[str, dict[str, float]]:
    """Of confidential and of unrestricted statements, where there are both or the first; ``secret`` is of the ranked statements."""
    both = np.concatenate([secret] * 2)  # sides
    parts = {"confidential": both, "unrestricted": ~both} if both.any() else {}
    return {
        name: {**summarise(ranks.rank[part], ranks.candidates[part]), "queries": int(part.sum())}
        for name, part in parts.items()
        if part.any()
    }


def by_relation(ranks: Ranks, names: list[str]) -> dict[str, dict[str, float]]:
    """The summary of each relation that occurs, with its number of ranks."""
    relation = ranks.triples[:, 1]
    return {
        names[r]: {
            **summarise(ranks.rank[relation == r], ranks.candidates[relation == r]),
            "queries": int((relation == r).sum()),
        }
        for r in np.unique(relation)
    }


def by_novelty(ranks: Ranks, train: np.ndarray, entities: int) -> dict[str, dict[str, float]]:
    """Summaries where no training statement speaks of the head, of the tail, or of either; nothing where none is new.

    ``new_end`` and ``known_end`` are of all of these questions, by whether what is asked for is new: that is the harder half, because
    nothing but its description speaks for a new answer.
    """
    seen = np.zeros(entities, bool)
    seen[train[:, [0, 2]].ravel()] = True
    head, tail = ~seen[ranks.triples[:, 0]], ~seen[ranks.triples[:, 2]]
    parts = {"new_head": head & ~tail, "new_tail": tail & ~head, "both_new": head & tail}
    wanted = np.where(np.asarray(ranks.side) == "tail", tail, head)
    parts |= {"new_end": wanted, "known_end": (head | tail) & ~wanted}
    return {
        name: {**summarise(ranks.rank[part], ranks.candidates[part]), "queries": int(part.sum())}
        for name, part in parts.items()
        if (head | tail).any()
    }


def mapping_classes(train: np.ndarray, relations: int) -> np.ndarray:
    """«1-1», «1-N», «N-1» or «N-N» for each relation: N where there are more than 1.5 per other side (Bordes et al. 2013)."""
    statements, heads, tails = distinct_counts(train, relations)
    many_tails = statements / np.maximum(heads, 1) > 1.5
    many_heads = statements / np.maximum(tails, 1) > 1.5
    return np.array(
        [f"{'N' if h else '1'}-{'N' if t else '1'}" for h, t in zip(many_heads, many_tails)], dtype=object
    )


def by_class(ranks: Ranks, classes: np.ndarray) -> dict[str, dict[str, float]]:
    """The summary of each mapping class, by the side that was asked for (e.g. «1-N tail»)."""
    label = np.array([f"{classes[r]} {s}" for r, s in zip(ranks.triples[:, 1], ranks.side)], dtype=object)
    return {
        str(name): {
            **summarise(ranks.rank[label == name], ranks.candidates[label == name]),
            "queries": int((label == name).sum()),
        }
        for name in np.unique(label)
    }


def interval(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % interval of the mean (Student)."""
    if len(values) < 2:
        return None
    from scipy.stats import t

    return float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
