"""The noisy counts of a run, released again and again with other canaries in: how much less noise they have than they are charged for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from veilgraph.account.prices import Counting
from veilgraph.attack.audit.recorded import Recorded
from veilgraph.attack.audit.steps import MOST, PRECISION, Measured
from veilgraph.attack.audit.trials import FEWEST, Trials
from veilgraph.load import Graph
from veilgraph.mark import may_be_confidential, unrestricted
from veilgraph.noise.gauss import source
from veilgraph.noise.measure import Meter, watched
from veilgraph.release.count_roles import weights
from veilgraph.release.counts import release


def measure_counts(
    graph: Graph, statements: np.ndarray, counting: Counting, multiplier: float, meter: Meter, error: float
) -> Iterator[tuple[int, int] | list[Measured]]:
    """Release counts until enough is known; ``graph`` holds all canaries, of which a fresh fair coin takes half out each time.

    Yields, in the end, what was found of the first release and, if there is one, of the weighted one; the release of roles is not looked
    at, and nothing is said about it.

    Reads confidential data: as the counts do. Releases: nothing; for the curator.
    """
    public, count, per_unit = unrestricted(graph), len(statements), statements.shape[1]
    own = np.isin(graph.keys(graph.train), graph.keys(statements.reshape(-1, 3)))
    rest, possible = graph.train[~own], np.flatnonzero(may_be_confidential(graph))
    cells = _cells(statements, possible, len(graph.entities))
    rows = np.concatenate([cells[0, :per_unit], cells[0, -1:]]) // len(
        graph.entities
    )  # (alike: the same for all)
    shares = [share for share in counting.shares(multiplier)[:2] if share]
    asked = [counting.asked(multiplier, share) for share in shares]
    reach = float(np.sqrt(per_unit + per_unit**2)) / asked[0].sensitivity
    wanted = 6.25 * (asked[0].multiplier / reach) ** 2 / PRECISION**2 / count
    times = int(np.clip(wanted, FEWEST, MOST))
    trials = [Trials({"sums": (0.5 * reach / one.multiplier, 1 + reach / one.multiplier)}) for one in asked]
    for number in range(times):
        included = np.random.default_rng().random(count) < 0.5
        train = np.concatenate([rest, statements[included].reshape(-1, 3)])
        seen = Recorded()
        with watched(seen):
            private = Meter(meter.ledger, source())
            for event in counting.events(multiplier):
                private.paid(event)
            release(
                graph.with_splits({**graph.splits, "train": train}), public, counting, multiplier, private
            )
        weight = np.ones(len(seen.noisy[0]))
        for one, trial, noisy in zip(asked, trials, seen.noisy):
            adds = np.append(
                weight[rows[:-1]], per_unit * weight[rows[-1]]
            )  # what a canary adds to its cells
            along = noisy.reshape(-1)[cells] @ (adds / np.linalg.norm(adds))
            trial.add({"sums": along / one.deviation}, included)
            weight = weights(seen.noisy[0], np.full(len(noisy), one.deviation))
        yield number + 1, times
    each = error / len(trials)
    yield [
        Measured(trial.lower_mu(each), trial.most(each), 1.0, 1 / one.multiplier, 1.0, times, reach)
        for one, trial in zip(asked, trials)
    ]


def _cells(statements: np.ndarray, possible: np.ndarray, entities: int) -> np.ndarray:
    """``[canaries, per_unit + 1]``: where each tail is counted, and where the head is, in the table of possible roles."""
    place = np.searchsorted(possible, statements[:, :, 1].astype(np.int64))
    tails = place * entities + statements[:, :, 2]
    head = (len(possible) + place[:, :1]) * entities + statements[:, :1, 0]
    return np.concatenate([tails, head], 1)
