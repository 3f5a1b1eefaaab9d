"""Gradient boosting on the strongest directions of the lists: sees what items say together."""

from __future__ import annotations

from typing import Any

from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

from veilgraph.attack.attribute.attackers.base import Classifier


class Boosting(Classifier):
    """Trees on 50 directions."""

    name = "boosting"

    def make(self) -> Any:
        return make_pipeline(
            TruncatedSVD(50, random_state=0),
            HistGradientBoostingClassifier(  # weights of classes make it thirty times slower; guesses are made fair anyway
                max_iter=60, max_leaf_nodes=8, learning_rate=0.1, max_bins=64, random_state=0
            ),
        )
