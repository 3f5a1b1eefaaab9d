"""What every mechanism is: it turns a clipped sum into a noisy step on the tables, and says what a step costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from veilgraph import registry
from veilgraph.account.events import Event, gaussian, sampled
from veilgraph.account.prices import Asked, StepTerms
from veilgraph.errors import PrivacyError
from veilgraph.models.parameters import Parameters
from veilgraph.noise.measure import Gauss, Meter
from veilgraph.noise.sample import Token
from veilgraph.train.gradients import RowGradient
from veilgraph.train.optim import Optimiser
from veilgraph.train.private.clip import NOWHERE, Clip, ClippedSum, Into

Optimisers = Mapping[str, Optimiser]


class Step(NamedTuple):
    """What a mechanism is given: a clipped sum, the (public) entities every unit was held against, the step size, and at
    which rate the units were drawn."""

    total: ClippedSum
    negatives: Tensor
    rate: float
    token: Token


class Mechanism(ABC):
    """One way of adding noise."""

    name: ClassVar[str]
    guarantee: ClassVar[str] = "dp"
    optimisers: ClassVar[tuple[str, ...]] = registry.names("optimisers")
    wants_votes: ClassVar[bool] = False  # how many units have each entity
    shrinks: ClassVar[bool] = True  # can shrink noisy rows: has them before they are added

    def __init__(self, terms: StepTerms, clip: Clip, meter: Meter) -> None:
        self.terms, self.clip, self.meter = terms, clip, meter
        self.factor = 1.0  # of the noise of the step being taken

    @classmethod
    def event(cls, terms: StepTerms) -> Event:
        """The cost of one step."""
        return sampled(terms.rate, gaussian(terms.noise_multiplier))

    @classmethod
    def earlier(cls, terms: StepTerms) -> list[Event]:
        """What earlier versions charged a step, where that was something else: no less, so their ledgers stay good."""
        return []

    @classmethod
    def refuse(cls, optimiser: str, shrink: bool = False) -> None:
        """Raise for an optimiser, or a shrinkage, this mechanism cannot be combined with."""
        if shrink and not cls.shrinks:
            raise PrivacyError(
                f"mechanism {cls.name} never sees the noisy sum of one step, so it cannot shrink it. "
                "Use mechanism dense, or --shrinkage none."
            )
        if optimiser not in cls.optimisers:
            raise PrivacyError(
                f"mechanism {cls.name} goes with optimiser {' or '.join(cls.optimisers)}, found {optimiser}: "
                "others would need the noise of rows that were not read yet. Use mechanism dense."
            )

    def catch_up(self, p: Parameters, entities: Tensor | None, relations: Tensor | None) -> None:
        """Called before rows are read (None: all rows). Only late noise has something to do here."""

    def into(self, p: Parameters, rate: float) -> Into:
        """Where a step's sum is to be added; by default nowhere: ``release`` is given its rows."""
        return NOWHERE

    @abstractmethod
    def release(self, p: Parameters, optimisers: Optimisers, step: Step) -> None:
        """Add noise to the step's sum and move the tables."""

    def flush(self, p: Parameters) -> None:
        """Called before anything is saved, shown, averaged or compared: afterwards the tables hold all their noise."""

    # --- for subclasses -----------------------------------------------------------------------------------------
    @property
    def multiplier(self) -> float:
        """The noise multiplier of the step being taken."""
        return self.factor * self.terms.noise_multiplier

    def measured(self, step: Step) -> Gauss:
        """The noise of the step's sum, which is all that the step releases."""
        return self.meter.measure(Asked(step.total.sensitivity, self.multiplier), token=step.token)[0]

    def move(
        self,
        table: Tensor,
        optimiser: Optimiser,
        rows: RowGradient,
        noise: Gauss,
        ids: Tensor | None,
        rate: float,
    ) -> None:
        """Move the rows ``ids`` (those of the sum, or any in order; None: all) by the mean over the expected batch, noise on each of them.

        What the sum has on other rows is left out. Sum and noise are added in float64 and rounded once.
        """
        count = len(table) if ids is None else len(ids)
        out = torch.from_numpy(noise.draw(count, table.shape[1]))
        assert rows.ids is not None
        if ids is None:
            out.index_add_(0, rows.ids, rows.values.double())
        elif ids is rows.ids:
            out += rows.values
        elif count and len(rows.ids):
            place = torch.searchsorted(ids, rows.ids).clamp_(max=count - 1)
            inside = ids[place] == rows.ids
            out.index_add_(0, place[inside], rows.values[inside].double())
        if self.terms.shrink:
            shrink(out, noise.deviation)
        optimiser.update(table, ids, out.div_(self.terms.expected).float(), rate)


def shrink(rows: Tensor, deviation: float) -> None:
    """Positive-part James–Stein, row by row, in place: by the share of a row's square that noise alone would have.

    Post-processing of rows that have their noise: it costs no privacy. A row that is all noise becomes zero.
    """
    square = (rows * rows).sum(1, keepdim=True).clamp_(min=1e-300)
    rows.mul_((1 - max(rows.shape[1] - 2, 0) * deviation**2 / square).clamp_(min=0))


def private_tables(p: Parameters, clip: Clip) -> dict[str, Tensor]:
    """The tables a private step moves, by name."""
    both = {"entities": (p.entities, clip.entities), "relations": (p.relations, clip.relations)}
    return {name: table for name, (table, wanted) in both.items() if wanted}


def mechanism_class(name: str) -> type[Mechanism]:
    """The mechanism of that name."""
    found: type[Mechanism] = registry.find("mechanisms", name)
    return found
