"""Where a node is in a public part of the graph, without any label: random numbers, smoothed over its edges again and again.

Nodes that share many neighbours end with nearly the same numbers, those far apart with nearly orthogonal ones; a row has norm one
(or zero, where a node has no public edge: nothing is known about its place).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from veilgraph.classify.adjacency import both_ways


def places(triples: np.ndarray, nodes: int, width: int, hops: int, seed: int) -> np.ndarray:
    """``[nodes, width]`` float32, from these statements alone.

    Reads: the statements it is given. Where they are public, so are places.
    """
    both, degree = both_ways(triples, nodes)
    scale = sparse.diags(1 / np.sqrt(np.maximum(degree, 1)))
    step = (scale @ both @ scale).tocsr().astype(np.float32)
    rows = np.random.default_rng(seed).standard_normal((nodes, width), np.float32)
    rows[degree == 0] = 0
    common = unit(
        np.sqrt(degree)[None].astype(np.float32)
    )  # what smoothing would make of everything in the end
    for number in range(hops):
        rows = 0.5 * rows + 0.5 * (step @ rows)
        if number % 2:
            rows = unit(rows - common.T @ (common @ rows))
    return unit(_spread(rows)).astype(np.float32)


def _spread(rows: np.ndarray) -> np.ndarray:
    """The same rows in coordinates that vary equally: what is common to all shrinks, what tells apart grows."""
    values, vectors = np.linalg.eigh(rows.T.astype(np.float64) @ rows)
    if not values.max() > 0:
        return np.zeros_like(rows)  # nothing public is known about anybody
    return rows @ (vectors / np.sqrt(np.maximum(values, values.max() * 1e-6)))


def unit(rows: np.ndarray) -> np.ndarray:
    """The same directions with norm one; zeros stay zeros."""
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norm > 0, norm, 1)
