"""What noisy counts say about entities of the same kind: a factor model of the table of roles.

A row of the table is a role (tail, or head, of a relation), a column an entity. Entities of one kind fill the same roles,
so the true table is nearly of low rank, plus something of its own in every cell. Rows are measured in units of their
noise; the best linear estimate of each column follows from the roles' covariance, which is estimated from the noisy
table itself. All of this is post-processing.
"""

from __future__ import annotations

import math

import numpy as np

CAP = 9.0  # deviations: no cell counts for more where covariances are estimated
OWN_SHARE = 0.3  # of the variance that is left in a role, taken for what single cells have of their own
WEIGHT_POWER = 0.5


def weights(table: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """For each role how much a statement should weigh in the next release; squares of a relation's two add up to 2.

    ``table`` holds the tail rows, then the head rows. Where a few entities fill a role many times over (countries,
    genders), counts stand out anyway: the weight goes to the other side.
    """
    half, size = len(table) // 2, table.shape[1]
    total = np.maximum(table.sum(1), deviation * math.sqrt(size))
    often = np.maximum(1, (np.square(table).sum(1) - size * deviation**2) / total)
    share = often**-WEIGHT_POWER
    pair = share[:half] + share[half:]
    return np.sqrt(2 * share / np.concatenate([pair, pair]))


class Roles:
    """The covariance of roles, from noisy counts in units of their noise; ``known`` rows have none."""

    def __init__(self, measured: np.ndarray, noise: np.ndarray) -> None:
        rows, columns = measured.shape
        self.noise = noise  # variance of each row
        self.measured = np.clip(measured, -CAP, CAP)
        squares, left = np.linalg.eigh(self.measured @ self.measured.T)
        value = np.sqrt(np.maximum(squares, 1e-30) / columns)
        ratio = rows / columns
        # singular values of a low-rank table under white noise, shrunk for the Frobenius norm (Gavish & Donoho 2017)
        kept = np.sqrt(np.maximum((value**2 - ratio - 1) ** 2 - 4 * ratio, 0)) / value
        kept = np.where(value > 1 + math.sqrt(ratio), kept, 0.0)
        self.factors = (left * kept)[:, kept > 0]
        low = np.square(self.factors).sum(1)
        own = OWN_SHARE * np.maximum(np.square(self.measured).mean(1) - noise - low, 0)
        self.covariance = self.factors @ self.factors.T + np.diag(own)

    def directions(self, deviation: np.ndarray) -> np.ndarray:
        """A unit vector for each role (zero for one of no kind): roles of one kind point the same way."""
        rows = self.factors * deviation[:, None]
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))

    def estimate(self, operator: np.ndarray | None = None, more: np.ndarray | None = None) -> np.ndarray:
        """The best linear estimate of the table, also from ``more`` = operator · table + white noise."""
        observed, noise, seen = self.measured, self.noise, np.eye(len(self.covariance))
        if operator is not None and more is not None:
            observed, seen = np.vstack([observed, more]), np.vstack([seen, operator])
            noise = np.concatenate([noise, np.ones(len(more))])
        cross = self.covariance @ seen.T
        return np.asarray(np.linalg.solve(seen @ cross + np.diag(noise), cross.T).T @ observed)
