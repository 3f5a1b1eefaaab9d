"""select: DP-FLames' choice of rows by noisy max and propose-test-release, with constants that hold.

Row norms are not monotone in the statements, so a gap between two neighbouring norms changes by up to 2·C and the
range of the noisy max is 3·C (C bounds one unit on every row). Charged at every step, whether or not the test passes
and without amplification by sampling: ρ = 2.25/(8·σ_r²) for the noisy max, ρ = 2/σ_p² for the test with threshold 2·C,
δ_t for a test that passes wrongly, and the Gaussian step. The test passes almost never (rows between rank B and 2·B are
touched about once, so their gap stays below the threshold): entities then stay where they are. Kept for comparison.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from veilgraph.account.events import Event, failure, gaussian, sampled, together, zcdp
from veilgraph.models.parameters import Parameters
from veilgraph.train.private.measure import Asked, Gauss
from veilgraph.train.private.mechanisms.base import Mechanism, Optimisers, Step, Terms

DELTA_TEST = 1e-12  # of one test


class Select(Mechanism):
    """DP-FLames' private choice of rows with constants that hold."""

    name = "select"
    ratio: ClassVar[float] = 8.0  # σ_r = σ_p = 8 · σ
    unsound: ClassVar[str | None] = None
    safe: ClassVar[float] = 2.0  # times C: how much a gap may change between neighbours

    @classmethod
    def event(cls, terms: Terms) -> Event:
        step = sampled(terms.rate, gaussian(terms.noise_multiplier))
        return together(step, *cls.choosing(terms.noise_multiplier))

    @classmethod
    def choosing(cls, multiplier: float) -> list[Event]:
        """What the choice of rows costs beside the step."""
        sigma = cls.ratio * multiplier
        return [zcdp(2.25 / (8 * sigma**2) + 2 / sigma**2), failure(DELTA_TEST)]

    def release(self, p: Parameters, optimisers: Optimisers, step: Step) -> None:
        total = step.total
        asked = Asked(total.sensitivity, self.multiplier)
        noise = self.meter.measure(
            asked, token=step.token, also=self.choosing(self.multiplier), unsound=self.unsound
        )[0]
        if total.entities is not None and total.entities.ids is not None:
            own = ~torch.isin(total.entities.ids, step.negatives)
            norms = torch.zeros(len(p.entities), dtype=torch.float64)
            norms[total.entities.ids[own]] = torch.linalg.vector_norm(total.entities.values[own], dim=1)
            chosen = self.top(norms, noise)
            if chosen is not None:
                ids = torch.unique(torch.cat([chosen, step.negatives]))
                self.move(p.entities, optimisers["entities"], total.entities, noise, ids, step.rate)
        if total.relations is not None:
            self.move(p.relations, optimisers["relations"], total.relations, noise, None, step.rate)

    def top(self, norms: Tensor, noise: Gauss) -> Tensor | None:
        """The rows above the largest noisy gap among ranks B … 2B, if the test says that the gap is safe."""
        scale = self.ratio * noise.deviation  # (the sensitivity of one row is that of all)
        ordered, index = norms.sort(descending=True)
        first = max(1, round(self.terms.expected))
        last = min(2 * first, len(norms) - 1)
        if first > last:
            return None
        gaps = ordered[first - 1 : last] - ordered[first : last + 1]
        gumbel = torch.from_numpy(self.meter.coins().gumbel(0, 2 * scale, len(gaps)))
        at = int((gaps + gumbel).argmax())
        slack = scale * math.sqrt(2 * math.log(1 / DELTA_TEST))
        safe = self.safe * self.clip.norm
        tested = max(safe, float(gaps[at])) + self.ratio * float(noise.draw(1)[0])
        return index[: first + at].sort().values if tested - slack > safe else None
