"""The noisy counts of a run, released again and again with other canaries in: how much less noise they have than they are charged for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from veilgraph.account.events import Event
from veilgraph.attack.audit.steps import MOST, PRECISION, Measured
from veilgraph.attack.audit.trials import FEWEST, Trials
from veilgraph.load import Graph
from veilgraph.mark import may_be_confidential, unrestricted
from veilgraph.train.private.gauss import source
from veilgraph.train.private.marginals import Counting, release
from veilgraph.train.private.measure import Asked, Meter, watched
from veilgraph.train.private.sample import Token


class _First:
    """Remembers the first release that is shown."""

    def __init__(self) -> None:
        self.noisy: np.ndarray | None = None

    def measured(self, event: Event, asked: Sequence[Asked], token: Token | None) -> None:
        """What it costs is known."""

    def released(self, noisy: np.ndarray) -> None:
        """Of several the first."""
        self.noisy = noisy if self.noisy is None else self.noisy


def measure_counts(
    graph: Graph, statements: np.ndarray, counting: Counting, multiplier: float, meter: Meter, error: float
) -> Iterator[tuple[int, int] | Measured]:
    """Release counts until enough is known; ``graph`` holds all canaries, of which a fresh fair coin takes half out each time.

    Reads confidential data: as the counts do. Releases: nothing; for the curator.
    """
    public, count, per_unit = unrestricted(graph), len(statements), statements.shape[1]
    own = np.isin(graph.keys(graph.train), graph.keys(statements.reshape(-1, 3)))
    rest = graph.train[~own]
    possible = np.flatnonzero(may_be_confidential(graph))
    cells = _cells(statements, possible, len(graph.entities))
    sensitivity = counting.asked(multiplier).sensitivity
    length = np.sqrt(
        per_unit + per_unit**2
    )  # of a canary's counts: one for each tail, all of them for its head
    reach, sigma = (
        float(length / sensitivity),
        counting.asked(multiplier, counting.shares(multiplier).first).multiplier,
    )
    times = int(np.clip(6.25 * (sigma / reach) ** 2 / PRECISION**2 / count, FEWEST, MOST))
    trials = Trials({"sums": (0.5 * reach / sigma, 1 + reach / sigma)})
    for number in range(times):
        included = np.random.default_rng().random(count) < 0.5
        train = np.concatenate([rest, statements[included].reshape(-1, 3)])
        seen = _First()
        with watched(seen):
            private = Meter(meter.ledger, source())
            for event in counting.events(multiplier):
                private.paid(event)
            release(
                graph.with_splits({**graph.splits, "train": train}), public, counting, multiplier, private
            )
        assert seen.noisy is not None
        along = _along(seen.noisy.reshape(-1)[cells], per_unit)
        trials.add({"sums": along / (sigma * sensitivity)}, included)
        yield number + 1, times
    yield Measured(trials.lower_mu(error), trials.most(count, error), 1.0, 1 / sigma, 1.0, times, reach)


def _along(noisy: np.ndarray, per_unit: int) -> np.ndarray:
    """Along what a unit adds: 1 in each tail's cell, all of it in the head's."""
    tails, head = noisy[:, :per_unit], noisy[:, per_unit]
    return np.asarray((tails.sum(1) + per_unit * head) / np.sqrt(per_unit + per_unit**2))


def _cells(statements: np.ndarray, possible: np.ndarray, entities: int) -> np.ndarray:
    """``[canaries, per_unit + 1]``: where each tail is counted, and where the head is, in the table of possible roles."""
    place = np.searchsorted(possible, statements[:, :, 1].astype(np.int64))
    tails = place * entities + statements[:, :, 2]
    head = (len(possible) + place[:, :1]) * entities + statements[:, :1, 0]
    return np.concatenate([tails, head], 1)
