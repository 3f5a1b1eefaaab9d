"""Compiled loops of private training."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SLACK = 1e-4  # of a norm, for rounding
MOST = 1e30  # a larger norm is no number
MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads ids over a hash table
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


@numba.njit(inline="always")
def _square(row):  # type: ignore[no-untyped-def]
    total = 0.0
    for m in range(row.shape[0]):
        total += np.float64(row[m]) * np.float64(row[m])
    return total


@numba.njit(fastmath={"reassoc", "contract"}, **_OPTIONS)
def clip_statements(  # type: ignore[no-untyped-def]
    head: Floats,
    tail: Floats,
    same: Bools,
    ahead: Floats,
    behind: Floats,
    on_negative: Floats,
    reach: Floats,
    tables: tuple[bool, bool],
    clip: float,
    norms: Floats,
    factor: Floats,
) -> None:
    """The norm of every statement's gradient; factor[i] (0: a filler) becomes what it must be multiplied with.

    ``same``: head and tail are one row. ``behind`` may be empty. What is not a number gets the factor 0.
    ``on_negative`` [2b, k] is multiplied with the factors.
    """
    b = head.shape[0]
    for i in numba.prange(b):
        total = 0.0
        if tables[0]:
            if same[i]:
                for m in range(head.shape[1]):
                    both = np.float64(head[i, m]) + np.float64(tail[i, m])
                    total += both * both
            else:
                total += _square(head[i]) + _square(tail[i])
            for side in range(i, 2 * b, b):
                total += np.float64(reach[side]) * np.float64(reach[side]) * _square(on_negative[side])
        if tables[1]:
            total += _square(ahead[i])
            if behind.shape[0]:
                total += _square(behind[i])
        norm = np.sqrt(total)
        norms[i] = np.float32(norm)
        if not norm < MOST:
            factor[i] = 0
        elif factor[i] > 0:
            factor[i] = np.float32(min(1.0, clip / (norm * (1 + SLACK) + 1e-12)))
        for side in range(i, 2 * b, b):
            for j in range(on_negative.shape[1]):
                on_negative[side, j] = on_negative[side, j] * factor[i] if factor[i] > 0 else np.float32(0)


@numba.njit(nogil=True, cache=True)
def distinct(ids: Ints) -> tuple[Ints, Ints]:  # type: ignore[no-untyped-def]
    """The distinct ids, in the order they are first met, and the place of each id among them."""
    bits = 4
    while (1 << bits) < 2 * ids.shape[0]:
        bits += 1
    slots = np.full(1 << bits, -1, np.int64)
    found, place = np.empty_like(ids), np.empty_like(ids)
    count, last = 0, (1 << bits) - 1
    for i in range(ids.shape[0]):
        slot = np.int64((np.uint64(ids[i]) * MIX) >> np.uint64(64 - bits))
        while slots[slot] >= 0 and found[slots[slot]] != ids[i]:
            slot = (slot + 1) & last
        if slots[slot] < 0:
            slots[slot] = count
            found[count] = ids[i]
            count += 1
        place[i] = slots[slot]
    return found[:count], place


@numba.njit(**_OPTIONS)
def add_scaled(  # type: ignore[no-untyped-def]
    out: Doubles, place: Ints, rows: Floats, factor: Floats, times: float, parts: int
) -> None:
    """out[place[i]] += times · factor[i] · rows[i], in order; rows of factor 0 are not read.

    Threads share the columns, in so many parts.
    """
    for part in numba.prange(parts):
        low, high = out.shape[1] * part // parts, out.shape[1] * (part + 1) // parts
        for i in range(place.shape[0]):
            if factor[i] != 0:
                scale, into, row = times * factor[i], out[place[i], low:high], rows[i, low:high]
                for m in range(high - low):
                    into[m] += scale * row[m]


@numba.njit(**_OPTIONS)
def settle(  # type: ignore[no-untyped-def]
    table: Floats, waiting: Doubles, seen: Doubles, rows: Ints, variance: float, noise: Doubles
) -> None:
    """table[row] += waiting[row] + √(variance − seen[row]) · noise, in float64, rounded once."""
    for i in numba.prange(rows.shape[0]):
        row = rows[i]
        scale = np.sqrt(variance - seen[row])
        for m in range(table.shape[1]):
            value = np.float64(table[row, m]) + waiting[row, m] + scale * noise[i, m]
            table[row, m] = np.float32(value)
        for m in range(table.shape[1]):
            waiting[row, m] = 0
        seen[row] = variance
