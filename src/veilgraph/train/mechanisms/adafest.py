"""adafest: noise only on rows whose noisy number of units passes a threshold (Ghazi et al. 2023, arXiv 2311.08357).

Each unit votes for the entities of its own statements: at most 2·m rows, one vote each, so the histogram of votes has
L2 sensitivity √(2m). It is released with Gaussian noise, compared with a public threshold, and the chosen rows get the
noisy gradient. Two Gaussian releases on the same batch cost one with 1/σ² = 1/σ_select² + 1/σ_gradient². Negatives are
public and always chosen. Rows nobody voted for pass by chance: how many is part of the mechanism, and which ones is
drawn by skipping ahead geometrically, so a step does not cost a number per row of the table.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from veilgraph.account.prices import Asked, StepTerms
from veilgraph.models.parameters import Parameters
from veilgraph.noise.measure import Gauss, Meter
from veilgraph.train.mechanisms.base import Mechanism, Optimisers, Step
from veilgraph.train.private.clip import Clip, Votes

SELECT_RATIO = 4.0  # σ_select = 4 · σ_gradient: choosing rows takes 1/17 of what the step costs


class AdaFEST(Mechanism):
    """Private choice of rows, then noise on the chosen ones."""

    name = "adafest"
    wants_votes = True

    def __init__(self, terms: StepTerms, clip: Clip, meter: Meter) -> None:
        super().__init__(terms, clip, meter)
        self.share = min(0.5, max(1e-9, terms.expected / max(terms.entities, 1)))

    @property
    def limit(self) -> float:
        """Of noisy votes, in deviations of their noise; so chosen that as many rows pass by chance as units are expected."""
        return NormalDist().inv_cdf(1 - self.share)

    @property
    def gradient_multiplier(self) -> float:
        """σ_gradient, from 1/σ² = (1 + 1/ratio²)/σ_gradient²."""
        return self.multiplier * math.sqrt(1 + SELECT_RATIO**-2)

    def chosen(self, votes: Votes, noise: Gauss) -> Tensor:
        """The rows that pass, sorted: noisy votes, and rows without votes that pass by chance."""
        drawn = torch.from_numpy(noise.draw(len(votes.ids)))
        passed = votes.ids[votes.counts + drawn > self.limit * noise.deviation]
        lucky = _skip(self.meter.coins(), NormalDist().cdf(-self.limit), self.terms.entities)
        lucky = lucky[~np.isin(lucky, votes.ids.numpy())]
        return torch.unique(torch.cat([passed, torch.from_numpy(lucky)]))

    def release(self, p: Parameters, optimisers: Optimisers, step: Step) -> None:
        total, sigma = step.total, self.gradient_multiplier
        assert total.votes is not None
        on_sums, on_votes = self.meter.measure(
            Asked(total.sensitivity, sigma),
            Asked(total.votes.sensitivity, SELECT_RATIO * sigma),
            token=step.token,
        )
        if total.entities is not None:
            ids = torch.unique(torch.cat([self.chosen(total.votes, on_votes), step.negatives]))
            self.move(p.entities, optimisers["entities"], total.entities, on_sums, ids, step.rate)
        if total.relations is not None:
            self.move(p.relations, optimisers["relations"], total.relations, on_sums, None, step.rate)


def _skip(coins: np.random.Generator, chance: float, count: int) -> np.ndarray:
    """Positions below ``count`` that each come up with this chance, independently."""
    found: list[np.ndarray] = []
    at = -1
    while at < count and chance > 0:
        steps = coins.geometric(chance, max(16, int(1.2 * count * chance)))
        places = at + np.cumsum(steps)
        found.append(places[places < count])
        at = int(places[-1])
    return np.concatenate(found).astype(np.int64) if found else np.empty(0, np.int64)
