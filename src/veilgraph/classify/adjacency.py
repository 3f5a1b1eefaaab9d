"""Statements as sparse matrices: who is beside whom, and sums over it."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def along(source: np.ndarray, target: np.ndarray, nodes: int) -> sparse.csr_matrix:
    """``[nodes, nodes]``: a product with rows sums, at every target, the rows of its sources (as often as it has them)."""
    return sparse.coo_matrix((np.ones(len(source)), (target, source)), (nodes, nodes)).tocsr()


def both_ways(statements: np.ndarray, nodes: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """The same in both directions, and every node's number of neighbours."""
    one_way = along(statements[:, 0], statements[:, 2], nodes)
    found = (one_way + one_way.T).tocsr()
    return found, np.asarray(found.sum(1)).ravel()
