"""Attackers: each learns from people whose attribute it knows, and gives every value a chance for the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from veilgraph.errors import MissingExtraError

PARTS = 3  # of the known people, to see what people it was not learnt from get
SMALLEST = 1e-9  # chance
Attacker = Callable[[], Any]  # makes something with fit(features, values) and predict_proba(features)


def attackers() -> dict[str, Attacker]:
    """Every attacker by its name."""
    try:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import BernoulliNB
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
    except ImportError:
        raise MissingExtraError("veil attack attribute", "attack") from None
    return {
        "naive bayes": lambda: BernoulliNB(alpha=1.0),
        "logistic": lambda: LogisticRegression(C=0.1, class_weight="balanced", max_iter=300),
        "neighbours": lambda: KNeighborsClassifier(25, metric="cosine"),
        "boosting": lambda: make_pipeline(
            TruncatedSVD(50, random_state=0),
            HistGradientBoostingClassifier(
                max_iter=60, max_leaf_nodes=8, learning_rate=0.1, class_weight="balanced", random_state=0
            ),
        ),
    }


def guess(make: Attacker, known: Any, values: np.ndarray, unknown: Any, kinds: int) -> np.ndarray:
    """``[n, kinds]`` logarithms of how likely each value is; the largest is the guess.

    Moved so that guesses are fair between values of any size: by the mean over the values of what people who have them get,
    if they are not among those it was learnt from.
    """
    own = np.empty((len(values), kinds))
    part = np.arange(len(values)) % PARTS
    for number in range(PARTS):
        own[part == number] = _chances(
            make, known[part != number], values[part != number], known[part == number], kinds
        )
    usual = np.mean([own[values == value].mean(0) for value in np.unique(values)], axis=0)
    return _chances(make, known, values, unknown, kinds) - usual


def _chances(make: Attacker, known: Any, values: np.ndarray, unknown: Any, kinds: int) -> np.ndarray:
    model = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(known, values)
        found = model.predict_proba(unknown)
    chances = np.full((unknown.shape[0], kinds), SMALLEST)
    chances[:, model.classes_] = np.clip(found, SMALLEST, 1)
    return np.log(chances)
