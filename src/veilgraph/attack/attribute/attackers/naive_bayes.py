"""Naive Bayes: every item that is there, or is not, speaks for itself."""

from __future__ import annotations

from typing import Any

from sklearn.naive_bayes import BernoulliNB

from veilgraph.attack.attribute.attackers.base import Classifier


class NaiveBayes(Classifier):
    """Items for themselves."""

    name = "naive bayes"

    def make(self) -> Any:
        return BernoulliNB(alpha=1.0)
