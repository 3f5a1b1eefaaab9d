"""What every attacker is: it sees features of people (mostly what is in their lists) and some people's values."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

PARTS = 3  # of the known people, to see what people it was not learnt from get
SMALLEST = 1e-9  # chance


class Attacker(ABC):
    """Learns from ``known`` people, whose ``values`` it has, and says how likely each value is for ``unknown`` ones."""

    name: ClassVar[str]
    slow: ClassVar[bool] = False  # asked for by name only

    @abstractmethod
    def chances(
        self, known: sparse.csr_matrix, values: np.ndarray, unknown: sparse.csr_matrix, kinds: int
    ) -> np.ndarray:
        """``[n, kinds]`` logarithms of how likely each value is, or any scores on such a scale."""

    def rehearse(self, known: sparse.csr_matrix, values: np.ndarray, kinds: int) -> np.ndarray:
        """The same for the known people themselves, each learnt from others."""
        own = np.empty((len(values), kinds))
        part = np.arange(len(values)) % PARTS
        for number in range(PARTS):
            rest = part != number
            own[~rest] = self.chances(known[rest], values[rest], known[~rest], kinds)
        return own

    def guess(
        self, known: sparse.csr_matrix, values: np.ndarray, unknown: sparse.csr_matrix, kinds: int
    ) -> tuple[np.ndarray, float]:
        """Scores for the unknown people, the largest is the guess; and how right such guesses are about known ones.

        Scores are moved so that guesses are fair between values of any size, by what people get in a rehearsal.
        """
        usual, right = fair(self.rehearse(known, values, kinds), values)
        return self.chances(known, values, unknown, kinds) - usual, right


def fair(own: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """What to subtract from scores so that all values count alike, and how right the guesses then are, in the mean of values."""
    present = np.unique(values)
    usual = np.mean([own[values == value].mean(0) for value in present], axis=0)
    right = (own - usual).argmax(1) == values
    return usual, float(np.mean([right[values == value].mean() for value in present]))


class Classifier(Attacker):
    """An attacker that is one of scikit-learn's classifiers."""

    @abstractmethod
    def make(self) -> Any:
        """Something with fit(features, values) and predict_proba(features)."""

    def chances(
        self, known: sparse.csr_matrix, values: np.ndarray, unknown: sparse.csr_matrix, kinds: int
    ) -> np.ndarray:
        model = self.make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(known, values)
            found = model.predict_proba(unknown)
        chances = np.full((unknown.shape[0], kinds), SMALLEST)
        chances[:, model.classes_] = np.clip(found, SMALLEST, 1)
        return np.asarray(np.log(chances))
