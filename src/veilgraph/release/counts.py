"""Noisy marginals: how often each entity is a tail, and a head, of each relation.

A statement adds to a tail cell and to a head cell. The budget is spent in up to three Gaussian releases, each aware of
the ones before (their costs add up to that of one Gaussian):

first      every count by itself: a statement weighs 1 in both cells
weighted   the same counts again; a statement weighs more on the side where counts are small, the squares adding up to 2
roles      for each entity the sum of its roles' directions, in the few dimensions that noisy counts can tell apart:
           many small counts in similar roles add up before the noise comes

So each release has sensitivity √2 for a statement, m·√2 for a unit of m. Unrestricted statements are counted exactly, and
relations that no rule makes confidential get no noise. What follows is free: a factor model of the roles
(``roles.py``) orders the cells that do not stand out of the noise, and lends support to those that do.

Large tables are never drawn whole: of the cells without a statement only those are drawn that pass the threshold, whose
number is binomial and whose values are the tail of a Gaussian. They take one release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from veilgraph.account.prices import MOST_ROLES, Asked, Counting, Shares, Tallies
from veilgraph.load.graph import Graph
from veilgraph.mark import may_be_confidential
from veilgraph.mark.units import capped, units
from veilgraph.models.prior import Prior
from veilgraph.noise.measure import Gauss, Meter, grid, rounded
from veilgraph.release.count_roles import Roles, weights

STANDS_OUT = 4.0  # deviations of the noise, support included
SUPPORT = 3.0  # times the factor model's estimate, added to a count before it is compared
OWN_SHARE = 0.005  # of a cell's own noisy count, where it does not stand out
BELOW = 0.01  # times what is expected of a cell that does not stand out
ROLE_CAP = 6.0  # deviations: no sum of directions counts for more
KNOWN_NOISE = 0.1  # of the variance of noisy rows: what the factor model allows rows without noise
LARGE_CHANCE = 1e-5  # of an empty cell to pass, where the table is not kept whole


def release(graph: Graph, public: Graph, counting: Counting, multiplier: float, meter: Meter | None) -> Prior:
    """The prior of a marked graph; without a meter only what is unrestricted is counted.

    Reads confidential data: every confidential training statement (at most m of a unit). Releases: the prior, at the
    cost of ``counting.events(multiplier)``, which the meter was paid.
    """
    secret = graph.train[graph.secret("train")] if meter is not None else graph.train[:0]
    if meter is not None and len(secret):
        secret = secret[capped(units(graph), counting.per_unit, meter.coins())]
    relations, entities = len(graph.relations), len(graph.entities)
    if not counting.whole:
        if counting.epsilon is not None:
            return _exceeding_whole(secret, public.train, relations, entities, counting.tallies, meter)
        return _exceeding(secret, public.train, relations, entities, counting.asked(multiplier), meter)
    known = np.zeros((2 * relations, entities))
    _count(known.reshape(-1), public.train, relations, entities)
    possible = np.flatnonzero(may_be_confidential(graph))
    table = known
    if len(possible) and meter is not None:
        table = _estimated(secret, known, possible, _Releases(counting, multiplier, meter))
    return Prior(relations, entities, torch.from_numpy(np.arcsinh(table)).float())


def weighted(graph: Graph) -> Prior | None:
    """Counts of what is public, each statement as much as it weighs; None where the table is too large to be kept whole."""
    relations, entities = len(graph.relations), len(graph.entities)
    if not Counting(0.0, 1, entities, relations).whole:
        return None
    weight = graph.weight("train")
    each = None if weight is None else np.tile(weight, 2)
    cells = _cells(graph.train, relations, entities)
    table = np.bincount(cells, each, minlength=2 * relations * entities).reshape(2 * relations, entities)
    return Prior(relations, entities, torch.from_numpy(np.arcsinh(table)).float())


def _cells(statements: np.ndarray, relations: int, entities: int) -> np.ndarray:
    head, relation, tail = statements.astype(np.int64).T
    return np.concatenate([relation * entities + tail, (relations + relation) * entities + head])


def _count(flat: np.ndarray, statements: np.ndarray, relations: int, entities: int) -> None:
    cells, counts = np.unique(_cells(statements, relations, entities), return_counts=True)
    flat[cells] += counts


@dataclass(frozen=True)
class Whole:
    """Geometric noise on whole numbers."""

    meter: Meter
    tallies: Tallies

    @property
    def deviation(self) -> float:
        """Of the noise."""
        return math.sqrt(self.tallies.variance)

    def on(self, exact: np.ndarray) -> np.ndarray:
        """The counts with their noise."""
        return self.meter.counts(np.rint(exact).astype(np.int64), self.tallies).astype(np.float64)


@dataclass(frozen=True)
class _Releases:
    """The noise of a table's releases, each good for its share of the budget."""

    counting: Counting
    multiplier: float
    meter: Meter

    @property
    def shares(self) -> Shares:
        return self.counting.shares(self.multiplier)

    def noise(self, share: float) -> Gauss | Whole:
        if self.counting.epsilon is not None:
            return Whole(self.meter, self.counting.tallies)
        return self.meter.measure(self.counting.asked(self.multiplier, share))[0]


def _estimated(
    secret: np.ndarray, known: np.ndarray, possible: np.ndarray, releases: _Releases
) -> np.ndarray:
    """The table of ``known`` counts, in place, noisy and denoised where a confidential statement is possible."""
    relations, entities = len(known) // 2, known.shape[1]
    secret = secret[
        np.isin(secret[:, 1], possible)
    ]  # a marked statement no public rule allows is not counted
    rows = np.concatenate([possible, relations + possible])
    counts = np.zeros_like(known)
    _count(counts.reshape(-1), secret, relations, entities)
    counts = counts[rows]
    table, deviation = _noisy(counts, releases)
    table += known[rows]
    if len(known) > MOST_ROLES:
        known[rows] = _ordered(table, np.zeros_like(table), deviation[:, None])
        return known
    others = np.setdiff1d(np.arange(2 * relations), rows)
    level = float(np.sqrt(np.mean(deviation**2)))
    measured = np.vstack([table / deviation[:, None], known[others] / level])
    roles = Roles(measured, np.concatenate([np.ones(len(rows)), np.full(len(others), KNOWN_NOISE)]))
    spread = np.concatenate([deviation, np.full(len(others), level)])
    operator = more = None
    if releases.shares.roles and roles.factors.shape[1]:
        noise = releases.noise(releases.shares.roles)
        direction = roles.directions(spread)[: len(rows)] * weights(table, deviation)[:, None]
        sums, own = noise.on(_role_sums(counts, secret, direction, possible)), noise.deviation
        sums += direction.T @ known[rows]
        more = np.clip(sums / own, -ROLE_CAP, ROLE_CAP)
        operator = np.hstack([direction.T * deviation / own, np.zeros((len(more), len(others)))])
    estimate = roles.estimate(operator, more)[: len(rows)] * deviation[:, None]
    known[rows] = _ordered(table, estimate, deviation[:, None])
    return known


def _noisy(counts: np.ndarray, releases: _Releases) -> tuple[np.ndarray, np.ndarray]:
    """The counts after the first and the weighted release, joined, and the deviation of each row."""
    first = releases.noise(releases.shares.first)
    table, deviation = first.on(counts), first.deviation
    single = np.full(len(counts), deviation)
    if not releases.shares.weighted:
        return table, single
    second, weight = releases.noise(releases.shares.weighted), weights(table, single)
    again = second.deviation / weight
    precise = 1 / again**2 / (1 / again**2 + 1 / deviation**2)
    table *= (1 - precise)[:, None]
    table += (precise / weight)[:, None] * second.on(counts * weight[:, None])
    return table, 1 / np.sqrt(1 / again**2 + 1 / deviation**2)


def _role_sums(
    counts: np.ndarray, secret: np.ndarray, direction: np.ndarray, possible: np.ndarray
) -> np.ndarray:
    """For each entity the sum of its roles' directions, one for each time it fills the role.

    A statement about one entity twice would add both its directions to one column: there it counts by 1/√2.
    """
    sums = direction.T @ counts
    loops = secret[secret[:, 0] == secret[:, 2]]
    place = np.searchsorted(possible, loops[:, 1])
    both = direction[place] + direction[len(possible) + place]
    np.subtract.at(sums.T, loops[:, 0], (1 - math.sqrt(0.5)) * both)
    return np.asarray(sums)


def _ordered(table: np.ndarray, estimate: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Counts that stand out, with the estimate's support; below them the others, in the estimate's order."""
    supported = table + SUPPORT * np.clip(estimate, -3 * deviation, 5 * deviation)
    below = estimate + OWN_SHARE * (table - estimate)
    return np.where(supported > STANDS_OUT * deviation, supported, BELOW * np.clip(below, -50, 50))


def _exceeding(
    secret: np.ndarray, public: np.ndarray, relations: int, entities: int, asked: Asked, meter: Meter | None
) -> Prior:
    """Only the cells that pass a threshold which empty ones pass with a small chance."""
    from scipy.stats import norm

    cells, counts = np.unique(_cells(secret, relations, entities), return_counts=True)
    values = counts.astype(np.float64)
    if meter is not None:
        noise, coins = meter.measure(asked)[0], meter.coins()
        total, threshold = (
            2 * relations * entities,
            _between(noise.deviation * norm.isf(LARGE_CHANCE), noise.deviation),
        )
        values, chance = noise.on(values), float(norm.sf(threshold / noise.deviation))
        lucky = coins.choice(total, int(coins.binomial(total, chance)), replace=False, shuffle=False)
        lucky = lucky[~np.isin(lucky, cells)]
        uniform = norm.cdf(noise.draw(len(lucky)) / noise.deviation)
        passing = noise.deviation * norm.isf(chance * uniform)  # a Gaussian, given that it passes
        cells = np.concatenate([cells, lucky])
        values = np.concatenate([values, rounded(passing, noise.deviation)])
        keep = values > threshold
        cells, values = cells[keep], values[keep]
    return _sparse(cells, values, public, relations, entities)


def _between(value: float, deviation: float) -> float:
    """A threshold near this value that lies between two of the numbers noise is rounded to.

    Whatever passes before rounding passes after it, so cells with a statement, which are rounded first, and those without, which are not
    drawn unless they pass, have the same odds at every number.
    """
    step = grid(deviation)
    return (math.floor(value / step) + 0.5) * step


def _exceeding_whole(
    secret: np.ndarray,
    public: np.ndarray,
    relations: int,
    entities: int,
    tallies: Tallies,
    meter: Meter | None,
) -> Prior:
    """The same with whole numbers: an empty cell is n or more with aⁿ / (1 + a), a = e^−ε, and then n + k with (1 − a)·aᵏ."""
    cells, counts = np.unique(_cells(secret, relations, entities), return_counts=True)
    values = counts.astype(np.float64)
    if meter is not None:
        total, kept = 2 * relations * entities, math.exp(-tallies.each)
        least = max(1, math.ceil(math.log(LARGE_CHANCE * (1 + kept)) / math.log(kept)))
        noisy, coins = meter.counts(counts, tallies), meter.coins()
        lucky = coins.choice(
            total, int(coins.binomial(total, kept**least / (1 + kept))), replace=False, shuffle=False
        )
        lucky = lucky[~np.isin(lucky, cells)]
        beyond = least + coins.geometric(1 - kept, len(lucky)) - 1
        keep = noisy >= least
        cells, values = (
            np.concatenate([cells[keep], lucky]),
            np.concatenate([noisy[keep], beyond]).astype(float),
        )
    return _sparse(cells, values, public, relations, entities)


def _sparse(
    cells: np.ndarray, values: np.ndarray, public: np.ndarray, relations: int, entities: int
) -> Prior:
    """A prior of these cells and what is counted exactly."""
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
