"""Logistic regression: a weight for every item."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression

from veilgraph.attack.attribute.attackers.base import Classifier


class Logistic(Classifier):
    """A weighted sum of items."""

    name = "logistic"

    def make(self) -> Any:
        return LogisticRegression(C=0.1, class_weight="balanced", max_iter=300)
