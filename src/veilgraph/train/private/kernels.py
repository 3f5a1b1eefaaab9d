"""Compiled loops of private training."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]

_OPTIONS = {"parallel": True, "nogil": True, "cache": True, "error_model": "numpy"}


@numba.njit(nogil=True, cache=True)
def hide_unit(scores: Floats, negatives: Ints, head: Ints, tail: Ints, unit: Ints) -> None:  # type: ignore[no-untyped-def]
    """Set scores[n, b, k] to −inf where the negative is an entity of any statement of the same unit."""
    sides, size, k = scores.shape
    b = head.shape[0]
    order = np.argsort(unit)
    ordered = unit[order]
    place = {np.int64(-1): np.int64(-1)}
    for side in range(sides):
        place.clear()
        for j in range(k):
            place[negatives[side, j]] = np.int64(j)
        start = (side * size) % b
        for i in range(size):
            statement = start + i
            low = np.searchsorted(ordered, unit[statement])
            while low < b and ordered[low] == unit[statement]:
                for entity in (head[order[low]], tail[order[low]]):
                    if entity in place:
                        scores[side, i, place[entity]] = -np.inf
                low += 1


@numba.njit(**_OPTIONS)
def move_rows(
    table: Floats, rows: Ints, sums: Floats, noise: Doubles, deviation: float, factor: float
) -> None:  # type: ignore[no-untyped-def]
    """table[rows[i]] += factor · (sums[i] + deviation · noise[i]), in float64, rounded once."""
    for i in numba.prange(rows.shape[0]):
        row = rows[i]
        for m in range(table.shape[1]):
            change = factor * (np.float64(sums[i, m]) + deviation * noise[i, m])
            table[row, m] = np.float32(np.float64(table[row, m]) + change)


@numba.njit(**_OPTIONS)
def add_scaled_rows(table: Floats, rows: Ints, scale: Doubles, noise: Doubles) -> None:  # type: ignore[no-untyped-def]
    """table[rows[i]] += scale[i] · noise[i]"""
    for i in numba.prange(rows.shape[0]):
        row = rows[i]
        for m in range(table.shape[1]):
            table[row, m] += np.float32(scale[i] * noise[i, m])
