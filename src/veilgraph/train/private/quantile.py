"""A clip norm from the data, privately: a quantile of the units' gradient norms, read off a noisy histogram.

Each unit of a Poisson sample is in exactly one bin, so the histogram has sensitivity 1 and one Gaussian release pays for
it. The bins are public: a fixed grid on a logarithmic scale.
"""

from __future__ import annotations

import numpy as np

from veilgraph.account.events import Event, gaussian, sampled
from veilgraph.train.private.measure import Asked, Meter
from veilgraph.train.private.sample import Token

EDGES = np.geomspace(1e-4, 1e4, 161)  # 12 % apart
NOISE = 10.0  # deviation of every bin's count
ENOUGH = 20_000  # units: more are not asked


def rate(units: float) -> float:
    """The chance of a unit to be asked; ``units`` is their noisy number."""
    return min(1.0, ENOUGH / units)


def event(units: float) -> Event:
    """The cost of the histogram."""
    return sampled(rate(units), gaussian(NOISE))


def quantile(norms: np.ndarray, share: float, meter: Meter, token: Token) -> float:
    """The norm that about this share of the units stays below.

    Reads confidential data: the norms of a batch. Releases: the quantile, charged ``event`` before the noise is drawn.
    """
    known = norms[np.isfinite(norms)]
    place = np.clip(np.searchsorted(EDGES, known), 1, len(EDGES) - 1)
    exact = np.bincount(place, minlength=len(EDGES))[1:]
    counts = meter.release(
        exact, Asked(1.0, NOISE), "clip norm: noisy histogram of gradient norms", token=token
    )
    counts[counts < 4 * NOISE] = 0  # bins of noise would pull every quantile to the middle of the grid
    if not counts.any():
        return 1.0
    reached = np.cumsum(counts) / counts.sum()
    return float(EDGES[1:][np.searchsorted(reached, share)])
