"""Compiled loops for what is not a matrix product: L1 and modulus distances, matrix-per-relation products, rank counts.

Shapes: queries ``q[n, b, d]``, candidates ``c[n, k, d]``, weights ``w[n, b, k]`` — n chunks, b queries and k candidates
in each. Every output element is summed by one thread in a fixed order, so results do not depend on scheduling.
The gradient kernels read the candidates transposed (``ct[n, d, k]``): the innermost sum then runs over contiguous
memory and becomes vector instructions. Compiled at first use (about two seconds), then read from a disk cache.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_OPTIONS = {"parallel": True, "fastmath": True, "nogil": True, "cache": True, "error_model": "numpy"}
ZERO = np.float32(0)
TINY = np.float32(1e-30)


@numba.njit(**_OPTIONS)
def l1_table(q: Floats, c: Floats, out: Floats) -> None:  # type: ignore[no-untyped-def]
    """out[n, b, k] = −Σ_d |q − c|. Example: q = (1, 2), c = (0, 4) gives −3."""
    chunks, b, d = q.shape
    for i in numba.prange(chunks * b):
        query = q[i // b, i % b]
        for k in range(c.shape[1]):
            candidate = c[i // b, k]
            total = ZERO
            for m in range(d):
                total += abs(query[m] - candidate[m])
            out[i // b, i % b, k] = -total


@numba.njit(**_OPTIONS)
def l1_pull(q: Floats, ct: Floats, w: Floats, out: Floats) -> None:  # type: ignore[no-untyped-def]
    """out[n, b, d] = ∂(Σ_k w · l1)/∂q = −Σ_k w · sign(q − c)."""
    chunks, b, d = q.shape
    for i in numba.prange(chunks * b):
        weight = w[i // b, i % b]
        for m in range(d):
            value = q[i // b, i % b, m]
            column = ct[i // b, m]
            total = ZERO
            for k in range(ct.shape[2]):
                difference = value - column[k]
                total += (weight[k] if difference > 0 else ZERO) - (weight[k] if difference < 0 else ZERO)
            out[i // b, i % b, m] = -total


@numba.njit(**_OPTIONS)
def modulus_table(q: Floats, c: Floats, out: Floats) -> None:  # type: ignore[no-untyped-def]
    """out[n, b, k] = −Σ |q − c| over complex numbers stored as (real half, imaginary half)."""
    chunks, b, d = q.shape
    half = d // 2
    for i in numba.prange(chunks * b):
        query = q[i // b, i % b]
        for k in range(c.shape[1]):
            candidate = c[i // b, k]
            total = ZERO
            for m in range(half):
                re = query[m] - candidate[m]
                im = query[m + half] - candidate[m + half]
                total += np.sqrt(re * re + im * im)
            out[i // b, i % b, k] = -total


@numba.njit(**_OPTIONS)
def modulus_pull(q: Floats, ct: Floats, w: Floats, out: Floats) -> None:  # type: ignore[no-untyped-def]
    """out[n, b, d] = ∂(Σ_k w · modulus)/∂q = −Σ_k w · (q − c)/|q − c|, zero where q = c."""
    chunks, b, d = q.shape
    half = d // 2
    for i in numba.prange(chunks * b):
        weight = w[i // b, i % b]
        for m in range(half):
            value_re, value_im = q[i // b, i % b, m], q[i // b, i % b, m + half]
            column_re, column_im = ct[i // b, m], ct[i // b, m + half]
            total_re, total_im = ZERO, ZERO
            for k in range(ct.shape[2]):
                re = value_re - column_re[k]
                im = value_im - column_im[k]
                scale = weight[k] / np.sqrt(re * re + im * im + TINY)
                total_re += scale * re
                total_im += scale * im
            out[i // b, i % b, m] = -total_re
            out[i // b, i % b, m + half] = -total_im


@numba.njit(**_OPTIONS)
def rows_times_matrices(x: Floats, matrices: Floats, index: Ints, out: Floats) -> None:  # type: ignore[no-untyped-def]
    """out[b] = x[b] · matrices[index[b]], with matrices [u, d, e]."""
    b, d = x.shape
    for i in numba.prange(b):
        matrix = matrices[index[i]]
        row = out[i]
        row[:] = ZERO
        for m in range(d):
            value = x[i, m]
            line = matrix[m]
            for e in range(row.shape[0]):
                row[e] += value * line[e]


@numba.njit(**_OPTIONS)
def rows_times_transposed(x: Floats, matrices: Floats, index: Ints, out: Floats) -> None:  # type: ignore[no-untyped-def]
    """out[b] = x[b] · matrices[index[b]]ᵀ, with matrices [u, e, d]."""
    b, d = x.shape
    for i in numba.prange(b):
        matrix = matrices[index[i]]
        row = x[i]
        for e in range(out.shape[1]):
            line = matrix[e]
            total = ZERO
            for m in range(d):
                total += row[m] * line[m]
            out[i, e] = total


@numba.njit(**_OPTIONS)
def outer_sums(x: Floats, g: Floats, order: Ints, starts: Ints, out: Floats) -> None:  # type: ignore[no-untyped-def]
    """out[u] = Σ x[b] ⊗ g[b] over the examples b = order[starts[u] : starts[u + 1]] of matrix u."""
    d = x.shape[1]
    for task in numba.prange((starts.shape[0] - 1) * d):
        u, m = task // d, task % d
        line = out[u, m]
        line[:] = ZERO
        for position in range(starts[u], starts[u + 1]):
            example = order[position]
            value = x[example, m]
            gradient = g[example]
            for e in range(line.shape[0]):
                line[e] += value * gradient[e]


@numba.njit(**_OPTIONS)
def sum_rows(table: Floats, order: Ints, starts: Ints, out: Floats) -> None:  # type: ignore[no-untyped-def]
    """out[u] = Σ table[b] over b = order[starts[u] : starts[u + 1]]."""
    for u in numba.prange(starts.shape[0] - 1):
        line = out[u]
        line[:] = 0
        for position in range(starts[u], starts[u + 1]):
            row = table[order[position]]
            for m in range(line.shape[0]):
                line[m] += row[m]


@numba.njit(**_OPTIONS)
def add_sparse_rows(scores: Floats, rows: Ints, starts: Ints, ids: Ints, values: Floats) -> None:  # type: ignore[no-untyped-def]
    """scores[i, ids] += values, over the stretch of row ``rows[i]``."""
    for i in numba.prange(scores.shape[0]):
        for position in range(starts[rows[i]], starts[rows[i] + 1]):
            scores[i, ids[position]] += values[position]


@numba.njit(**_OPTIONS)
def count_better(  # type: ignore[no-untyped-def]
    scores: Floats,
    row: Ints,
    target: Ints,
    known_from: Ints,
    known_to: Ints,
    known: Ints,
    better: Ints,
    equal: Ints,
) -> None:
    """For each query i: how many candidates in ``scores[row[i]]`` beat, and how many tie with, ``target[i]``.

    The target itself is counted in neither, nor are ``known[known_from[i] : known_to[i]]`` (other true answers).
    """
    for i in numba.prange(row.shape[0]):
        line = scores[row[i]]
        score = line[target[i]]
        above, same = 0, 0
        for k in range(line.shape[0]):
            above += line[k] > score
            same += line[k] == score
        for position in range(known_from[i], known_to[i]):
            if known[position] != target[i]:
                above -= line[known[position]] > score
                same -= line[known[position]] == score
        better[i] = above
        equal[i] = same - 1


@numba.njit(**_OPTIONS)
def mask_own(scores: Floats, negatives: Ints, source: Ints, target: Ints) -> None:  # type: ignore[no-untyped-def]
    """Set scores[n, b, k] to −inf where the negative is the example's own source or target."""
    chunks, b, k = scores.shape
    for i in numba.prange(chunks * b):
        own_source, own_target = source[i], target[i]
        line = scores[i // b, i % b]
        ids = negatives[i // b]
        for j in range(k):
            if ids[j] == own_source or ids[j] == own_target:
                line[j] = -np.inf
