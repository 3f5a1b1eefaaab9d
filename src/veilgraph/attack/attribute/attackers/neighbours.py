"""Nearest neighbours: people with similar lists."""

from __future__ import annotations

from typing import Any

from sklearn.neighbors import KNeighborsClassifier

from veilgraph.attack.attribute.attackers.base import Classifier


class Neighbours(Classifier):
    """The 25 most similar people vote."""

    name = "neighbours"

    def make(self) -> Any:
        return KNeighborsClassifier(25, metric="cosine")
