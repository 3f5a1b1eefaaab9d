"""How well labels are told: accuracy, macro F1, and precision among the first five where entities have several."""

from __future__ import annotations

import numpy as np


def without_learning(truth: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    """The accuracy of always saying the commonest training label (majority), and of any label at random (coin).

    >>> without_learning(np.array([[1, 0], [1, 0], [0, 1], [1, 0]]), np.array([0, 1]), np.array([2, 3]))
    {'majority': 0.5, 'coin': 0.5}
    """
    truth = truth.astype(bool)
    commonest = int(truth[train].sum(0).argmax())
    return {"majority": float(truth[test, commonest].mean()), "coin": float(truth[test].mean())}


def measure(scores: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """accuracy, macro_f1 and, where a row has several labels, precision@5; ``scores`` and ``truth`` are ``[n, labels]``.

    Accuracy is the share of rows whose best label is one of theirs. Macro F1 is over labels that occur.

    >>> measure(np.array([[.9, .1], [.2, .8], [.7, .3]]), np.array([[1, 0], [0, 1], [0, 1]]))["accuracy"]
    0.6666666666666666
    """
    truth = truth.astype(bool)
    best = scores.argmax(1)
    rows = np.arange(len(scores))
    out = {"accuracy": float(truth[rows, best].mean())}
    several = bool((truth.sum(1) > 1).any())
    said = np.zeros_like(truth)
    if several:
        order = np.argsort(-scores, 1, kind="stable")
        place = np.argsort(order, 1)
        said = place < truth.sum(1, keepdims=True)  # as many as it has: what a threshold would be tuned to
        first = min(5, truth.shape[1])
        out["precision@5"] = float(np.take_along_axis(truth, order[:, :first], 1).mean())
    else:
        said[rows, best] = True
    hit, asked = (said & truth).sum(0), truth.sum(0)
    f1 = 2 * hit / np.maximum(said.sum(0) + asked, 1)
    out["macro_f1"] = float(f1[asked > 0].mean())
    return out
