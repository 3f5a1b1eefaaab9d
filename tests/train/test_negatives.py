"""Shared negatives: distinct in a chunk, uniform over the vocabulary, independent of everything else."""

from __future__ import annotations

import numpy as np
import pytest

from veilgraph.train.negatives import draw


@pytest.mark.parametrize(("k", "entities"), [(1, 1), (3, 10), (10, 10), (7, 5), (64, 1000)])
def test_distinct_and_in_range(k: int, entities: int) -> None:
    ids = draw(np.random.default_rng(0), 50, k, entities)
    assert ids.shape == (50, min(k, entities))
    assert ids.min() >= 0
    assert ids.max() < entities
    assert all(len(set(row)) == len(row) for row in ids.tolist())


def test_uniform() -> None:
    """χ² over 10 entities; fails by chance once in 10,000 runs, and the seed is fixed."""
    counts = np.bincount(draw(np.random.default_rng(1), 20_000, 3, 10).ravel(), minlength=10)
    expected = counts.sum() / 10
    assert ((counts - expected) ** 2 / expected).sum() < 33.7
