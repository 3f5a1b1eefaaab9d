"""Scores without what they say about a secret: linear concept erasure (LEACE; Belrose et al. 2023).

Some people told their attribute. From their scores the directions are found in which the attribute can be read, and taken
out of everybody's with the least change: afterwards no linear function of the (told) scores knows the attribute better than its
mean. The attribute of the person whose list is made is never asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veilgraph.errors import InputError

DIRECTIONS = 200  # of the scores, the strongest ones; the rest is left as it is
PENALTY = 0.03  # of the mean variance, added to every direction's
FEWEST = 20  # people


@dataclass(frozen=True)
class Eraser:
    """``scores − ((scores − mean) @ readᵀ) @ write``; in the mean every value of the attribute counts alike."""

    mean: np.ndarray  # [i]
    read: np.ndarray  # [values, i]
    write: np.ndarray  # [values, i]

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The scores of any people, erased."""
        for _ in range(2):  # the second time takes what single precision left of it
            scores = scores - (scores @ self.read.T - self.usual) @ self.write
        return np.asarray(scores, np.float32)

    @cached_property
    def usual(self) -> np.ndarray:
        """What is read of the mean."""
        return np.asarray(self.mean @ self.read.T)

    @classmethod
    def fit(cls, scores: np.ndarray, values: np.ndarray) -> Eraser:
        """From people who told: ``[n, i]`` scores and ``[n]`` values."""
        kinds, code, count = np.unique(values, return_inverse=True, return_counts=True)
        if len(values) < FEWEST or len(kinds) < 2:
            raise InputError(
                f"an attribute is erased from what {FEWEST} people or more told, with two values or more; found {len(values)} "
                f"people and {len(kinds)} values."
            )
        weight = (1 / count[code]) / len(kinds)  # every value counts alike
        given = scores.astype(np.float64)
        mean = weight @ given
        centred = given - mean
        basis = _directions(centred, min(DIRECTIONS, len(values) - 1))
        inside = centred @ basis
        covariance = (inside * weight[:, None]).T @ inside
        covariance += PENALTY * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        told = np.eye(len(kinds))[code] - 1 / len(kinds)
        cross = (inside * weight[:, None]).T @ told  # [d, values]
        solved = np.linalg.solve(covariance, cross)
        read = solved @ np.linalg.pinv(cross.T @ solved)
        kept = (mean, (basis @ read).T, cross.T @ basis.T)
        return cls(*(np.ascontiguousarray(array, np.float32) for array in kept))


def _directions(centred: np.ndarray, most: int) -> np.ndarray:
    """``[i, d]`` the strongest directions of the rows, by the smaller of the two tables of products."""
    if len(centred) >= centred.shape[1]:
        return np.asarray(np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :most])
    strength, left = np.linalg.eigh(centred @ centred.T)
    order = np.flatnonzero(strength > 1e-9 * strength[-1])[::-1][:most]
    return np.asarray((centred.T @ left[:, order]) / np.sqrt(strength[order]))
