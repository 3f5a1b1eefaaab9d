"""Recommenders that need no graph: nobody should mistake a weak recommender for privacy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Scores = np.ndarray


def popular(taken: np.ndarray) -> Scores:
    """Everybody gets what most have."""
    return np.tile(taken.sum(0).astype(np.float32), (len(taken), 1))


def item_ridge(taken: np.ndarray, penalty: float = 200.0) -> Scores:
    """Ridge regression of every item on all items, its own column included (so known items may lead)."""
    have = taken.astype(np.float64)
    gram = have.T @ have
    weights = np.linalg.solve(gram + penalty * np.eye(len(gram)), gram)
    return np.asarray(have @ weights, np.float32)


def factors(
    taken: np.ndarray, *, dimension: int = 32, weight: float = 10.0, penalty: float = 20.0, rounds: int = 10
) -> Scores:
    """Matrix factorisation of who has what by alternating least squares; what one has weighs more than what one lacks
    (Hu, Koren & Volinsky 2008)."""
    rng = np.random.default_rng(0)
    items = rng.normal(0, 0.1, (taken.shape[1], dimension))
    users = np.zeros((taken.shape[0], dimension))
    for _ in range(rounds):
        users = _solve(taken, items, weight, penalty)
        items = _solve(taken.T, users, weight, penalty)
    return np.asarray(users @ items.T, np.float32)


def _solve(have: np.ndarray, other: np.ndarray, weight: float, penalty: float) -> np.ndarray:
    """The rows that fit best, all at once: one small system each."""
    common = other.T @ other + penalty * np.eye(other.shape[1])
    out = np.empty((len(have), other.shape[1]))
    for start in range(0, len(have), 512):
        part = have[start : start + 512].astype(np.float64)
        systems = common + weight * np.einsum("ui,id,ie->ude", part, other, other, optimize=True)
        out[start : start + 512] = np.linalg.solve(systems, ((1 + weight) * part @ other)[..., None])[..., 0]
    return out


BASELINES: dict[str, Callable[[np.ndarray], Scores]] = {
    "popular items": popular,
    "matrix factorisation": factors,
    "item ridge": item_ridge,
}
