"""How good lists are: against what users took later, and against the recommender's own scores."""

from __future__ import annotations

import numpy as np


def quality(lists: np.ndarray, later: np.ndarray) -> dict[str, float]:
    """hit, recall, ndcg and coverage of ``[u, k]`` lists of columns; ``later`` says who took what afterwards.

    Users who took nothing are left out of all but coverage (the share of items that are in some list).
    """
    count = later.sum(1)
    asked = count > 0
    right = np.take_along_axis(later, lists, 1)[asked]
    return {
        "hit": float(right.any(1).mean()) if asked.any() else float("nan"),
        "recall": float((right.sum(1) / count[asked]).mean()) if asked.any() else float("nan"),
        "ndcg": float(gains(lists, later).mean()) if asked.any() else float("nan"),
        "coverage": len(np.unique(lists)) / later.shape[1],
    }


def wanted(later: np.ndarray, taken: np.ndarray, *, repeat: bool) -> np.ndarray:
    """What a list should have: what users took later; where known items may repeat, also what they have."""
    return later | taken if repeat else later


def gains(lists: np.ndarray, later: np.ndarray) -> np.ndarray:
    """NDCG of every user who took something afterwards."""
    k = lists.shape[1]
    count = later.sum(1)
    asked = count > 0
    right = np.take_along_axis(later, lists, 1)[asked]
    gain = 1 / np.log2(np.arange(2, k + 2))
    return np.asarray((right * gain).sum(1) / np.cumsum(gain)[np.minimum(count[asked], k) - 1])


def kept_score(scores: np.ndarray, lists: np.ndarray, original: np.ndarray) -> np.ndarray:
    """Q of every user: the scores of a list over those of the original one."""
    whole = np.take_along_axis(scores, original, 1).sum(1)
    return np.asarray(np.take_along_axis(scores, lists, 1).sum(1) / np.maximum(whole, 1e-12))
