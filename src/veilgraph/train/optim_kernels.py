"""Compiled updates of some rows of a table: one pass over memory, each row by one thread."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_OPTIONS = {"parallel": True, "fastmath": True, "nogil": True, "cache": True, "error_model": "numpy"}
ONE, ZERO = np.float32(1), np.float32(0)
ADAGRAD_EPSILON, ADAM_EPSILON = np.float32(1e-10), np.float32(1e-8)
FIRST, SECOND = np.float32(0.9), np.float32(0.999)


@numba.njit(**_OPTIONS)
def sgd(table: Floats, rows: Ints, gradient: Floats, rate: np.float32) -> None:  # type: ignore[no-untyped-def]
    """table −= rate · gradient"""
    for i in numba.prange(rows.shape[0]):
        row = rows[i]
        for m in range(table.shape[1]):
            table[row, m] -= rate * gradient[i, m]


@numba.njit(**_OPTIONS)
def adagrad(table: Floats, squares: Floats, rows: Ints, gradient: Floats, rate: np.float32) -> None:  # type: ignore[no-untyped-def]
    """squares += gradient²; table −= rate · gradient / √squares"""
    for i in numba.prange(rows.shape[0]):
        row = rows[i]
        for m in range(table.shape[1]):
            g = gradient[i, m]
            s = squares[row, m] + g * g
            squares[row, m] = s
            table[row, m] -= rate * g / (np.sqrt(s) + ADAGRAD_EPSILON)


@numba.njit(**_OPTIONS)
def row_adagrad(table: Floats, squares: Floats, rows: Ints, gradient: Floats, rate: np.float32) -> None:  # type: ignore[no-untyped-def]
    """As adagrad, with the mean square of the row's gradient for all its coordinates."""
    for i in numba.prange(rows.shape[0]):
        row = rows[i]
        total = ZERO
        for m in range(table.shape[1]):
            total += gradient[i, m] * gradient[i, m]
        squares[row] += total / np.float32(table.shape[1])
        step = rate / (np.sqrt(squares[row]) + ADAGRAD_EPSILON)
        for m in range(table.shape[1]):
            table[row, m] -= step * gradient[i, m]


@numba.njit(**_OPTIONS)
def adam(  # type: ignore[no-untyped-def]
    table: Floats, mean: Floats, squares: Floats, count: Ints, rows: Ints, gradient: Floats, rate: np.float32
) -> None:
    """Adam (Kingma & Ba 2015), with each row's own number of steps."""
    for i in numba.prange(rows.shape[0]):
        row = rows[i]
        count[row] += 1
        steps = np.float32(count[row])
        unbias = np.sqrt(ONE - SECOND**steps) / (ONE - FIRST**steps)
        for m in range(table.shape[1]):
            g = gradient[i, m]
            average = FIRST * mean[row, m] + (ONE - FIRST) * g
            s = SECOND * squares[row, m] + (ONE - SECOND) * g * g
            mean[row, m] = average
            squares[row, m] = s
            table[row, m] -= rate * unbias * average / (np.sqrt(s) + ADAM_EPSILON)
