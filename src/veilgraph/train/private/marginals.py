"""Noisy marginals: how often each entity is a tail, and a head, of each relation — one Gaussian release.

A statement adds one to a tail cell and one to a head cell, so a unit of m statements changes the table by at most m·√2.
Unrestricted statements are counted exactly, and relations that no rule makes confidential get no noise. What follows is
post-processing and free: cells that do not stand out of the noise are replaced by a low-rank reconstruction of the table
(entities of the same kind fill the same roles), and the result is put on a logarithmic scale.

Large tables are never drawn whole: of the cells without a statement only those are drawn that pass the threshold, whose
number is binomial and whose values are the tail of a Gaussian.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from veilgraph.account.events import Event, gaussian
from veilgraph.load.graph import Graph
from veilgraph.mark import may_be_confidential
from veilgraph.mark.units import capped, units
from veilgraph.models.prior import Prior
from veilgraph.train.private.gauss import Noise

WHOLE = 30_000_000  # cells: up to here the table is drawn and kept whole
STANDS_OUT = 3.0  # deviations of the noise
CAP = 8.0  # deviations: no cell counts for more in the reconstruction
OWN_SHARE = 0.02  # of a cell's own noisy count, where it does not stand out
LARGE_CHANCE = 1e-5  # of an empty cell to pass, where the table is not kept whole


def event(multiplier: float) -> Event:
    """The cost of the release."""
    return gaussian(multiplier)


def deviation(multiplier: float, per_unit: int) -> float:
    """The standard deviation of the noise on every cell."""
    return multiplier * math.sqrt(2) * per_unit


def release(graph: Graph, public: Graph, multiplier: float, noise: Noise) -> Prior:
    """The prior of a marked graph; a multiplier of 0 means exact counts (not private).

    Reads confidential data: every confidential training statement (at most m of a unit). Releases: the prior, at the
    cost of ``event(multiplier)``, to be charged before this is called.
    """
    per_unit = graph.marks.per_unit if graph.marks is not None else 1
    secret = graph.train[graph.secret("train")]
    if len(secret):
        secret = secret[capped(units(graph), per_unit, noise.coins())]
    scale, relations, entities = deviation(multiplier, per_unit), len(graph.relations), len(graph.entities)
    if 2 * relations * entities <= WHOLE:
        table = np.zeros((2 * relations, entities))
        _count(table.reshape(-1), secret, relations, entities)
        known = np.zeros_like(table)
        _count(known.reshape(-1), public.train, relations, entities)
        private = np.tile(may_be_confidential(graph), 2)
        if scale and private.any():
            table[private] += scale * noise.normal(*table[private].shape)
            table[private] = _smooth(table[private] + known[private], scale)
        table[~private] = known[~private]
        return Prior(relations, entities, torch.from_numpy(np.arcsinh(table)).float())
    return _exceeding(secret, public.train, relations, entities, scale, noise)


def _cells(statements: np.ndarray, relations: int, entities: int) -> np.ndarray:
    head, relation, tail = statements.astype(np.int64).T
    return np.concatenate([relation * entities + tail, (relations + relation) * entities + head])


def _count(flat: np.ndarray, statements: np.ndarray, relations: int, entities: int) -> None:
    cells, counts = np.unique(_cells(statements, relations, entities), return_counts=True)
    flat[cells] += counts


def _smooth(table: np.ndarray, scale: float) -> np.ndarray:
    """Cells that stand out as they are; below them the others, in the order of a low-rank reconstruction.

    Large cells are capped first, so that they do not take all of the rank, and singular values are shrunk as is best
    for a low-rank table under white noise (Gavish & Donoho 2017, for the Frobenius norm).
    """
    rows, columns = table.shape
    if rows > columns:
        return _smooth(table.T, scale).T
    capped = np.clip(table, -CAP * scale, CAP * scale)
    squares, left = np.linalg.eigh(capped @ capped.T)
    value = np.sqrt(np.maximum(squares, 1e-30)) / (scale * math.sqrt(columns))
    ratio = rows / columns
    kept = np.sqrt(np.maximum((value**2 - ratio - 1) ** 2 - 4 * ratio, 0)) / value
    share = np.where(value > 1 + math.sqrt(ratio), kept / value, 0.0)
    reconstructed = (left * share) @ (left.T @ capped)
    below = reconstructed + OWN_SHARE * (table - reconstructed)
    return np.where(table > STANDS_OUT * scale, table, 0.01 * np.clip(below, -50, 50))


def _exceeding(
    secret: np.ndarray, public: np.ndarray, relations: int, entities: int, scale: float, noise: Noise
) -> Prior:
    """Only the cells that pass a threshold which empty ones pass with a small chance."""
    from scipy.stats import norm

    total, threshold = 2 * relations * entities, float(scale * norm.isf(LARGE_CHANCE))
    cells, counts = np.unique(_cells(secret, relations, entities), return_counts=True)
    values = counts + scale * noise.normal(len(cells))
    coins = noise.coins()
    lucky = coins.choice(total, int(coins.binomial(total, LARGE_CHANCE)), replace=False, shuffle=False)
    lucky = lucky[~np.isin(lucky, cells)]
    drawn = scale * norm.isf(LARGE_CHANCE * coins.random(len(lucky)))  # a Gaussian, given that it passes
    cells, values = np.concatenate([cells, lucky]), np.concatenate([values, drawn])
    keep = values > threshold
    cells, values = cells[keep], values[keep]
    known, exact = np.unique(_cells(public, relations, entities), return_counts=True)
    every, inverse = np.unique(np.concatenate([cells, known]), return_inverse=True)
    summed = np.bincount(inverse, np.concatenate([values, exact]), len(every))
    starts = np.searchsorted(every, np.arange(2 * relations + 1) * entities)
    return Prior(
        relations,
        entities,
        None,
        torch.from_numpy(starts),
        torch.from_numpy(every % entities),
        torch.from_numpy(np.arcsinh(summed)).float(),
    )
