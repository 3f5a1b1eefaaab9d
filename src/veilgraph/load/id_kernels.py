"""Compiled loops over a graph's statements."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@numba.njit(nogil=True, cache=True)
def let_entities_leave(  # type: ignore[no-untyped-def]
    order: Ints,
    pairs_from: Ints,
    statements_from: Ints,
    neighbour: Ints,
    relation: Ints,
    other: Ints,
    count: Ints,
    first: int,
    most: int,
    least: int,
    neighbours: int,
    held: NDArray[np.int8],
) -> None:
    """Mark entities in ``held``, in this order, while the rest keeps its neighbours and its relations (see inductive.py).

    ``neighbour`` holds the distinct neighbours of each entity, ``relation`` and ``other`` the relation and the other end of each of its
    statements; ``count`` the statements of each relation, which are used up. The ``first`` that leave are marked 2, the rest 1.
    """
    left = pairs_from[1:] - pairs_from[:-1]  # neighbours that are still there
    taken = np.zeros_like(count)
    gone = 0
    for entity in order:
        if gone >= most:
            break
        free = True
        for place in range(pairs_from[entity], pairs_from[entity + 1]):
            if held[neighbour[place]] == 0 and left[neighbour[place]] <= neighbours:
                free = False
        for place in range(statements_from[entity], statements_from[entity + 1]):
            if held[other[place]] == 0:
                taken[relation[place]] += 1
        for place in range(statements_from[entity], statements_from[entity + 1]):
            free = free and (
                taken[relation[place]] == 0 or count[relation[place]] - taken[relation[place]] >= least
            )
        for place in range(statements_from[entity], statements_from[entity + 1]):
            if free:
                count[relation[place]] -= taken[relation[place]]
            taken[relation[place]] = 0
        if free:
            held[entity] = 2 if gone < first else 1
            gone += 1
            for place in range(pairs_from[entity], pairs_from[entity + 1]):
                left[neighbour[place]] -= 1
