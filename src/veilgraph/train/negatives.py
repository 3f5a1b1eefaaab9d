"""Negatives shared by a chunk of positives: distinct within the chunk, uniform over the vocabulary.

The vocabulary is cut into k stretches of (almost) equal length, one entity is drawn from each, and all are shifted by
one random amount around the circle: k distinct entities, each entity equally likely, no loop and no rejection.
They never depend on the statements, so they cost no privacy.
"""

from __future__ import annotations

import numpy as np


def draw(rng: np.random.Generator, chunks: int, k: int, entities: int) -> np.ndarray:
    """``[chunks, min(k, entities)]`` entity ids, distinct within a row.

    Example: 10 entities, k = 3 draws one of 0–2, one of 3–5 and one of 6–9, then adds the same shift modulo 10.
    """
    k = min(k, entities)
    edges = np.arange(k + 1, dtype=np.int64) * entities // k
    inside = rng.random((chunks, k), dtype=np.float32) * np.diff(edges)
    ids = edges[:-1] + np.minimum(inside.astype(np.int64), np.diff(edges) - 1)
    return (ids + rng.integers(entities, size=(chunks, 1))) % entities


def draw_two_sides(rng: np.random.Generator, chunks: int, k: int, entities: int) -> np.ndarray:
    """``[2 · chunks, min(k, entities // 2)]`` ids: row i for the tails of chunk i, row chunks + i for its heads.

    The two rows of a chunk have no entity in common, so that a statement meets each negative once.
    """
    k = max(1, min(k, entities // 2))
    both = draw(rng, chunks, 2 * k, entities)
    return np.concatenate([both[:, ::2], both[:, 1::2]]) if both.shape[1] > 1 else np.concatenate([both] * 2)
