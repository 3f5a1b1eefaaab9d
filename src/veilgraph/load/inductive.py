"""Which entities may be held out so that training still knows everything it needs (Daza et al. 2021, arXiv 2010.03496).

In random order, an entity leaves if each of its neighbours has more than two neighbours and no relation is left with fewer than a
hundred statements. Those of the test split leave first, so that no statement of the validation split speaks of them. What is left
only shrinks: an entity that may not leave now may not leave later, and one pass is enough.
"""

from __future__ import annotations

import numpy as np

LEAST = 100  # statements a relation keeps
NEIGHBOURS = 2  # a neighbour must have more than these: the one that leaves, and perhaps itself


def held_out(
    statements: np.ndarray, entities: int, relations: int, order: np.ndarray, valid: int, test: int
) -> np.ndarray:
    """0, 1 (valid) or 2 (test) for each entity; entities are asked in this order, until so many of each have left."""
    from veilgraph.load.id_kernels import let_entities_leave

    head, relation, tail = statements.astype(np.int64).T.reshape(3, -1)
    pairs = np.unique(np.concatenate([head * entities + tail, tail * entities + head]))
    own = np.flatnonzero(head != tail)  # a loop is one of its entity's statements, not two
    ends = np.concatenate([head, tail[own]])
    by_end = np.argsort(ends, kind="stable")
    held = np.zeros(entities, np.int8)
    let_entities_leave(
        order.astype(np.int64),
        *(np.searchsorted(column, np.arange(entities + 1)) for column in (pairs // entities, ends[by_end])),
        pairs % entities,
        np.concatenate([relation, relation[own]])[by_end],
        np.concatenate([tail, head[own]])[by_end],
        np.bincount(relation, minlength=relations),
        test,
        valid + test,
        LEAST,
        NEIGHBOURS,
        held,
    )
    return held
