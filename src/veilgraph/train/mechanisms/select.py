"""select: DP-FLames' choice of rows by noisy max and propose-test-release, with constants that hold.

Row norms are not monotone in the statements, so a gap between two neighbouring norms changes by up to 2·C and the
range of the noisy max is 3·C (C bounds one unit on every row). Charged at every step, whether or not the test passes, as one
release of the sampled batch that is at most as telling as a Gaussian with 1/σ'² = 1/σ² + 4/σ_p² + μ², and δ_t beside it:

1/σ²     the step
4/σ_p²   the test, a Gaussian on a number that one unit changes by 2·C at most
μ²       the noisy max. Gumbel noise of scale 2·σ_r·C makes it an exponential mechanism that is η-private with η = 3/(2·σ_r). The
         trade-off curve of η-privacy is two straight lines that meet on the diagonal at 1/(1 + e^η); a Gaussian's curve is convex, so the
         one through that point, μ = 2·Φ⁻¹(e^η/(1 + e^η)), lies below both (Dong, Roth & Su 2022): no attacker does better
         against the noisy max than against that Gaussian. Gaussian curves compose by their squares, and sampling keeps what dominates
         dominating (Zhu, Dong & Wang 2022, arXiv 2106.08567).
δ_t      a test that passes although the gap could close; where it does not, both neighbours choose the same rows, which tells nothing more

The test passes almost never (rows between rank B and 2·B are touched about once, so their gap stays below the threshold): entities
then stay where they are. Kept for comparison.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import ClassVar

import torch
from torch import Tensor

from veilgraph.account.events import Event, failure, gaussian, sampled, together, zcdp
from veilgraph.account.prices import Asked, StepTerms, price
from veilgraph.models.parameters import Parameters
from veilgraph.noise.measure import Gauss
from veilgraph.train.mechanisms.base import Mechanism, Optimisers, Step

DELTA_TEST = 1e-12  # of one test
ALSO = (failure(DELTA_TEST),)


class Select(Mechanism):
    """DP-FLames' private choice of rows with constants that hold."""

    name = "select"
    ratio: ClassVar[float] = 8.0  # σ_r = σ_p = 8 · σ
    unsound: ClassVar[str | None] = None
    safe: ClassVar[float] = 2.0  # times C: how much a gap may change between neighbours

    @classmethod
    def event(cls, terms: StepTerms) -> Event:
        step = Asked(1.0, terms.noise_multiplier)
        choice = cls.choosing(step)
        return price([step, *choice], terms.rate, ALSO)

    @classmethod
    def earlier(cls, terms: StepTerms) -> list[Event]:
        """The choice of rows without amplification by sampling (0.1)."""
        step, sigma = (
            sampled(terms.rate, gaussian(terms.noise_multiplier)),
            cls.ratio * terms.noise_multiplier,
        )
        return [together(step, zcdp(2.25 / (8 * sigma**2) + 2 / sigma**2), *ALSO)]

    @classmethod
    def choosing(cls, step: Asked) -> tuple[Asked, Asked]:
        """What the choice of rows costs beside the step: its test, and a Gaussian that tells as much as the noisy max."""
        sigma = cls.ratio * step.multiplier
        return Asked(2 * step.sensitivity, sigma / 2), Asked(
            3 * step.sensitivity, 1 / as_gaussian(1.5 / sigma)
        )

    def release(self, p: Parameters, optimisers: Optimisers, step: Step) -> None:
        total = step.total
        asked = Asked(total.sensitivity, self.multiplier)
        noise, test, _ = self.meter.measure(
            asked, *self.choosing(asked), token=step.token, also=ALSO, unsound=self.unsound
        )
        if total.entities is not None and total.entities.ids is not None:
            own = ~torch.isin(total.entities.ids, step.negatives)
            norms = torch.zeros(len(p.entities), dtype=torch.float64)
            norms[total.entities.ids[own]] = torch.linalg.vector_norm(total.entities.values[own], dim=1)
            chosen = self.top(norms, test)
            if chosen is not None:
                ids = torch.unique(torch.cat([chosen, step.negatives]))
                self.move(p.entities, optimisers["entities"], total.entities, noise, ids, step.rate)
        if total.relations is not None:
            self.move(p.relations, optimisers["relations"], total.relations, noise, None, step.rate)

    def top(self, norms: Tensor, test: Gauss) -> Tensor | None:
        """The rows above the largest noisy gap among ranks B … 2B, if the test says that the gap is safe."""
        scale = test.deviation
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
        tested = max(safe, float(gaps[at])) + float(test.draw(1)[0])
        return index[: first + at].sort().values if tested - slack > safe else None


def as_gaussian(epsilon: float) -> float:
    """The μ of the Gaussian that tells two neighbours apart at least as well as anything ε-private does.

    >>> round(as_gaussian(0.1875), 3)
    0.235
    """
    return -2 * NormalDist().inv_cdf(1 / (1 + math.exp(min(epsilon, 700.0))))
