"""A clip norm from the data, privately: a quantile of the units' gradient norms, read off a noisy histogram.

Each unit of a Poisson sample is in exactly one bin, so the histogram has sensitivity 1 and one Gaussian release pays for
it. The bins are public: a fixed grid on a logarithmic scale.
"""

from __future__ import annotations

import numpy as np

from veilgraph.account.prices import HISTOGRAM_NOISE, Asked
from veilgraph.noise.measure import Meter
from veilgraph.noise.sample import Token

EDGES = np.geomspace(1e-4, 1e4, 161)  # 12 % apart


def quantile(norms: np.ndarray, share: float, meter: Meter, token: Token) -> float:
    """The norm that about this share of the units stays below.

    Reads confidential data: the norms of a batch. Releases: the quantile, charged before the noise is drawn.
    """
    known = norms[np.isfinite(norms)]
    place = np.clip(np.searchsorted(EDGES, known), 1, len(EDGES) - 1)
    exact = np.bincount(place, minlength=len(EDGES))[1:]
    counts = meter.release(
        exact, Asked(1.0, HISTOGRAM_NOISE), "clip norm: noisy histogram of gradient norms", token=token
    )
    counts[counts < 4 * HISTOGRAM_NOISE] = (
        0  # bins of noise would pull every quantile to the middle of the grid
    )
    if not counts.any():
        return 1.0
    reached = np.cumsum(counts) / counts.sum()
    return float(EDGES[1:][np.searchsorted(reached, share)])
