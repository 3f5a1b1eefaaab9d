"""Labels spread over public edges: every node takes the mean of its neighbours' labels again and again, labelled ones keep their own."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from veilgraph.classify.adjacency import both_ways

ROUNDS, KEPT = 60, 0.95
FLOOR = 1e-3  # weight of what is thought of everybody, where little arrives
PARTS = 4


class Spread:
    """Over these statements, in both directions."""

    def __init__(self, statements: np.ndarray, nodes: int) -> None:
        both, degree = both_ways(statements, nodes)
        self.alone = degree == 0
        self.step = (sparse.diags(1 / np.maximum(degree, 1)) @ both).tocsr()

    def labels(self, truth: np.ndarray, known: np.ndarray) -> np.ndarray:
        """``[nodes, labels]`` logarithms of shares, from the labels of these nodes alone."""
        rows = np.zeros(truth.shape)
        rows[known] = truth[known]
        for _ in range(ROUNDS):
            rows = KEPT * (self.step @ rows)
            rows[known] = truth[known]
        rows += FLOOR * truth[known].mean(0)
        return np.log(np.maximum(rows / np.maximum(rows.sum(1, keepdims=True), 1e-12), 1e-9))

    def honest(self, truth: np.ndarray, known: np.ndarray, seed: int) -> np.ndarray:
        """The same, with each labelled node told by others' labels alone.

        Who learns from its own label as a feature would trust that feature too much.
        """
        told = self.labels(truth, known)
        if len(known) >= 2 * PARTS:
            order = np.random.default_rng(seed).permutation(len(known))
            for number in range(PARTS):
                left = known[order[number::PARTS]]
                told[left] = self.labels(truth, np.setdiff1d(known, left))[left]
        return told

    def smooth(self, chances: np.ndarray, truth: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Answers that agree better with their neighbours'; nodes without any keep theirs."""
        own = chances.copy()
        own[known] = truth[known]
        rows = own
        for _ in range(ROUNDS // 2):
            rows = (1 - KEPT) * own + KEPT * (self.step @ rows)
            rows[self.alone] = own[self.alone]
            rows[known] = truth[known]
        return rows
