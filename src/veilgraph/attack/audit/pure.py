"""Answers and whole-number counts, released again and again with other canaries in: how often somebody who sees them is right.

A release with ε and no δ lets nobody be right more often than e^ε / (1 + e^ε) about a canary that is in by a fair coin. Here whoever
guesses sees the release itself: of answers, whether the canary's cell was answered yes; of counts, whether both of its counts speak for
it. Those guesses are right just so often, so the bound comes close to the claim: these mechanisms *reach* what they promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from veilgraph.account.prices import Counting
from veilgraph.account.promise import Promise
from veilgraph.attack.audit.recorded import Recorded
from veilgraph.load import Graph
from veilgraph.mark import may_be_confidential, units, unrestricted
from veilgraph.noise.gauss import source
from veilgraph.noise.measure import Meter, watched
from veilgraph.release.counts import release
from veilgraph.release.response import Questions, respond

GUESSES = 20_000  # about: with so many an ε of 1 is known to 3 %
MOST, FEWEST = 400, 5  # releases


@dataclass(frozen=True)
class Guessed:
    """What guesses say of a release with ε and no δ."""

    epsilon: float  # at least
    most: float  # what could have been refuted, had every guess been right
    claimed: float
    guesses: int
    right: int
    times: int


def measure_answers(
    graph: Graph, promise: Promise, canaries: int, meter: Meter, error: float, counted: np.ndarray | None
) -> Iterator[tuple[int, int] | Guessed]:
    """Ask again and again, with cells that nobody's statement is in as canaries, of which a fresh fair coin takes half out each time.

    Reads confidential data: as the answers do. Releases: nothing; for the curator.
    """
    rng = np.random.Generator(np.random.SFC64())
    each = promise.answer_epsilon or 0.0
    public = unrestricted(graph)
    questions = Questions.about(public, may_be_confidential(graph), each, counted)
    taken = questions.cells.cells(graph.triples)
    free = np.setdiff1d(rng.integers(0, max(len(questions.cells), 1), 4 * canaries), taken)
    cells = rng.permutation(free)[:canaries]
    if not len(cells):
        yield Guessed(0.0, 0.0, each, 0, 0, 0)
        return
    told = questions.cells.statements(cells)
    sizes = np.unique(units(graph), return_counts=True)[1]
    whole = replace(
        promise, per_unit=int(sizes.max(initial=0)) + len(cells)
    )  # nothing is cut: a canary is judged by itself
    times = int(np.clip(math.ceil(_wanted(each) / len(cells)), FEWEST, MOST))
    right = 0
    for number in range(times):
        included = rng.random(len(cells)) < 0.5
        train = np.concatenate([graph.train, told[included]])
        private = Meter(meter.ledger, source())
        private.paid(whole.answered)
        single = graph.with_splits({**graph.splits, "train": train})
        said = np.isin(cells, respond(single, questions, whole, private))
        right += int((said == included).sum())
        yield number + 1, times
    yield _judged(times * len(cells), right, each, error, times)


def measure_whole(
    graph: Graph, statements: np.ndarray, counting: Counting, meter: Meter, error: float
) -> Iterator[tuple[int, int] | Guessed]:
    """Count again and again; ``graph`` holds all canaries, each of which speaks for itself where both of its counts agree.

    Reads confidential data: as the counts do. Releases: nothing; for the curator.
    """
    rng = np.random.Generator(np.random.SFC64())
    own = np.isin(graph.keys(graph.train), graph.keys(statements.reshape(-1, 3)))
    rest, public = graph.train[~own], unrestricted(graph)
    possible = np.flatnonzero(may_be_confidential(graph))
    place = np.searchsorted(possible, statements[:, :, 1].astype(np.int64))
    entities, count = len(graph.entities), statements.shape[0]
    tails = place * entities + statements[:, :, 2]
    head = (len(possible) + place[:, 0]) * entities + statements[:, 0, 0]
    per_unit, tallies = statements.shape[1], counting.tallies
    times = int(np.clip(math.ceil(2 * _wanted(tallies.epsilon) / count), FEWEST, MOST))
    guesses = right = 0
    for number in range(times):
        included = rng.random(count) < 0.5
        train = np.concatenate([rest, statements[included].reshape(-1, 3)])
        seen = Recorded()
        with watched(seen):
            private = Meter(meter.ledger, source())
            private.paid(tallies.event)
            release(graph.with_splits({**graph.splits, "train": train}), public, counting, 0.0, private)
        noisy = seen.noisy[0].reshape(-1)
        # a canary adds 1 to each of its tails and as many to its head: they are 0 without it
        high = (noisy[tails] >= 1).all(1) & (noisy[head] >= per_unit)
        low = (noisy[tails] <= 0).all(1) & (noisy[head] <= 0)
        guesses += int((high | low).sum())
        right += int((high & included).sum() + (low & ~included).sum())
        yield number + 1, times
    yield _judged(guesses, right, tallies.epsilon, error, times)


def _wanted(epsilon: float) -> float:
    """Guesses: where hardly any is wrong, enough for some that are."""
    return float(min(GUESSES * max(1.0, math.exp(min(epsilon, 20)) / 20), 40 * GUESSES))


def _judged(guesses: int, right: int, claimed: float, error: float, times: int) -> Guessed:
    return Guessed(
        _bound(guesses, right, error), _bound(guesses, guesses, error), claimed, guesses, right, times
    )


def _bound(guesses: int, right: int, error: float) -> float:
    """ε at least, where so many guesses are right (Clopper & Pearson): log odds of the least share."""
    from scipy.stats import beta

    if not guesses or right <= guesses / 2:
        return 0.0
    share = float(beta.ppf(error, right, guesses - right + 1))
    return max(0.0, math.log(share / (1 - share))) if 0 < share < 1 else 0.0
