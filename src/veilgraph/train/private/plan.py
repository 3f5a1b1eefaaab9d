"""A private training: unrestricted statements learn as ever, confidential ones through sampling, clipping and noise.

The file to read for whoever checks the promise: a step is paid for (``purse``), drawn by coins (``batches``), clipped per unit (``rows``,
``sums``) and released by a mechanism, whose noise is drawn by the one function that knows its price (``measure``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from veilgraph.account.epsilon import spent
from veilgraph.account.events import nothing
from veilgraph.account.prices import asking_rate
from veilgraph.account.promise import Promise
from veilgraph.config.settled import Private
from veilgraph.errors import BudgetError, PrivacyError
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.noise.measure import Meter
from veilgraph.noise.sample import pieces
from veilgraph.train.batches import Batch, QueryBatch
from veilgraph.train.gradients import Objective
from veilgraph.train.mechanisms import Step, mechanism_class
from veilgraph.train.optim import Optimiser
from veilgraph.train.plan import OrdinaryPlan, Plan
from veilgraph.train.private import quantile
from veilgraph.train.private.batches import PrivateBatches
from veilgraph.train.private.clip import NOWHERE, Clip, ClippedSum, How, Into, votes_of
from veilgraph.train.private.purse import Purse
from veilgraph.train.private.schedule import Schedule
from veilgraph.train.private.sums import filled, joined, shape
from veilgraph.train.rows import Rows


class PrivateStep(NamedTuple):
    """The place of a private step in the schedule; its statements are drawn when it is taken."""

    number: int


@dataclass
class Secret:
    """What private steps are taken with."""

    promise: Promise
    settings: Private
    meter: Meter
    batches: PrivateBatches
    clip: Clip
    objective: Objective


class PrivatePlan(Plan):
    """Unrestricted batches and private steps, interleaved by a public schedule."""

    def __init__(
        self, model: Model, rows: Rows, secret: Secret, ordinary: OrdinaryPlan | None, epochs: int
    ) -> None:
        super().__init__()
        self.model, self.rows, self.ordinary = model, rows, ordinary
        self.promise, self.settings, self.meter = secret.promise, secret.settings, secret.meter
        self.confidential, self.clip, self.objective = secret.batches, secret.clip, secret.objective
        self.terms, self.ledger = secret.promise.terms, secret.meter.ledger
        mechanism = mechanism_class(secret.settings.mechanism)
        mechanism.refuse(secret.settings.optimiser, self.terms.shrink)
        self.mechanism = mechanism(self.terms, self.clip, self.meter)
        self.guarantee = mechanism.guarantee
        self.purse = Purse(secret.promise, secret.meter)
        self.schedule = Schedule(secret.promise.steps, max(epochs, 1))
        self.size = shape(self.terms.expected, secret.settings.negatives)
        self.clip_settled = False
        self.losses: list[float] = []

    # --- the schedule: public ------------------------------------------------------------------------------------
    @property
    def positives(self) -> float:
        """Statements read in an epoch, by what is public (for the speed that is shown)."""
        ordinary = self.ordinary.positives if self.ordinary else 0
        return ordinary + self.terms.expected * self.promise.steps / self.schedule.epochs

    @property
    def steps_per_epoch(self) -> int:
        """Ordinary batches and private steps of a middling epoch."""
        ordinary = self.ordinary.steps_per_epoch if self.ordinary else 0
        return ordinary + -(-self.promise.steps // self.schedule.epochs)

    def batches(self, epoch: int) -> Iterator[Any]:
        """The steps of one epoch."""
        of = self.ordinary.steps_per_epoch if self.ordinary else 1
        ordinary: Iterator[Any] = self.ordinary.batches(epoch) if self.ordinary else iter([None])
        for done, batch in enumerate(ordinary):
            if batch is not None:
                yield batch
            for number in self.schedule.between(done, of, epoch):
                yield PrivateStep(number)

    def tells(self, batch: Any) -> bool:
        """Whether a batch has a loss that may be shown: that of a private step is confidential."""
        return not isinstance(batch, PrivateStep)

    def pay(self, first: int, last: int) -> bool:
        """Have the steps of these epochs on the ledger; False if the budget allows no step at all.

        For a training that is stopped and rebuilt between epochs: nothing is paid for that is not taken.
        """
        return self.purse.pay_between(self.schedule.before(first), self.schedule.before(last))

    # --- a step ---------------------------------------------------------------------------------------------------
    def step(self, p: Parameters, optimisers: dict[str, Optimiser], batch: Any, pace: float) -> float:
        """Take one step; returns the mean loss of an ordinary batch, 0 for a private step."""
        if not isinstance(batch, PrivateStep):
            assert self.ordinary is not None
            self.mechanism.catch_up(p, *_rows_read(batch, len(p.relations), self.objective.reciprocal))
            loss = self.ordinary.step(p, optimisers, batch, pace)
            for key, value in self.ordinary.seconds.items():
                self.seconds[key] += value
            self.ordinary.seconds = dict.fromkeys(self.ordinary.seconds, 0.0)
            return loss
        self._settle_clip(p)
        if not self.purse.pay(batch.number):
            return 0.0
        self.mechanism.factor = self.promise.stages.factor(batch.number)
        return self.take(p, optimisers, batch, pace * self.settings.rate)

    def take(self, p: Parameters, optimisers: dict[str, Optimiser], batch: PrivateStep, rate: float) -> float:
        """A private step that was paid for."""
        began = time.perf_counter()
        statements, owner, token = self.confidential.draw(self.meter.coins())
        wrong = self.confidential.negatives(batch.number)
        relation = statements[:, 1]
        if self.objective.reciprocal:
            relation = torch.cat([relation, relation + len(p.relations) // 2])
        read = torch.cat([statements[:, 0], statements[:, 2], wrong.view(-1)])
        drawn = time.perf_counter()
        tables = self.rows.tables(p)
        self.mechanism.catch_up(tables, read, relation)
        total = self.total(p, statements, owner, wrong, self.mechanism.into(tables, rate))
        summed = time.perf_counter()
        private = {name: optimisers[f"private.{own}"] for name, own in self.rows.moved.items()}
        self.mechanism.release(tables, private, Step(total, wrong.view(-1), rate, token))
        if not token.spent:
            raise PrivacyError(
                f"mechanism {self.mechanism.name} moved the tables without noise that was measured for the step. This is a mistake in the "
                "mechanism, not in the settings: please report it to whoever wrote it."
            )
        ended = time.perf_counter()
        for key, value in (
            ("sample", drawn - began),
            ("gradient", summed - drawn),
            ("update", ended - summed),
        ):
            self.seconds[key] += value
        self.losses.append(total.loss / self.terms.expected)
        return 0.0  # the loss is confidential: for the trace alone, never for a checkpoint

    def total(
        self, p: Parameters, statements: Tensor, owner: Tensor, wrong: Tensor, into: Into
    ) -> ClippedSum:
        """The clipped sum of a batch of any size, piece by piece."""
        parts, how = [], How(self.model, self.objective, self.clip)
        for piece in pieces(owner.numpy(), self.size):
            rows, whose = statements[piece], owner[piece] - owner[piece][0]
            batch, unit = filled(rows, whose, wrong, self.size)
            several = unit if self.terms.per_unit > 1 else None
            found = self.rows.clipped(how, p, batch, several, into)
            parts.append(found._replace(norms=found.norms[: int(whose[-1]) + 1]))
        tables, votes = self.rows.tables(p), None
        if self.mechanism.wants_votes:
            votes = votes_of(statements, owner, self.terms.entities, self.terms.per_unit)
        return ClippedSum(
            joined([part.entities for part in parts], tables.entities) if self.clip.entities else None,
            joined([part.relations for part in parts], tables.relations) if self.clip.relations else None,
            self.clip.norm,
            sum(part.loss for part in parts),
            torch.cat([part.norms for part in parts]) if parts else torch.empty(0),
            votes,
        )

    def _settle_clip(self, p: Parameters) -> None:
        """The clip norm at a private quantile of the gradient norms, once: charged, then drawn, then written down."""
        share = self.settings.quantile
        if share is None or self.clip_settled:
            return
        found = self.ledger.found("clip")
        if found is None:
            after = spent([*self.ledger.events, self.promise.norms], self.promise.delta).epsilon
            budget = self.promise.epsilon
            if budget is not None and self.ledger.private and after > budget:
                raise BudgetError(
                    f"finding a clip norm would bring ε to {after:.3g}, beyond the budget of {budget:g}. "
                    "Set --clip instead of --clip-quantile, or raise --epsilon."
                )
            statements, owner, token = self.confidential.draw(
                self.meter.coins(), asking_rate(self.promise.units)
            )
            self.mechanism.catch_up(p, None, None)
            norms = self.total(p, statements, owner, self.confidential.negatives(0), NOWHERE).norms
            found = quantile.quantile(norms.numpy(), share, self.meter, token)
            self.ledger.charge(nothing(), "clip norm", clip=found)
        self.clip = replace(self.clip, norm=found)
        self.mechanism.clip = self.clip
        self.clip_settled = True

    # --- what is told --------------------------------------------------------------------------------------------
    def ledger_mark(self) -> str:
        return self.ledger.mark

    def record(self) -> dict[str, float]:
        """The mean loss of the epoch's private steps: for the curator."""
        found, self.losses = self.losses, []
        return {"private_loss": float(np.mean(found))} if found else {}

    def flush(self, p: Parameters) -> None:
        """Before anything leaves the trainer: all noise is in the tables, and rows are made from them."""
        self.mechanism.flush(self.rows.tables(p))
        self.rows.flush(p)

    def end(self, epoch: int, why: str) -> None:
        """Write down how many steps were due before this epoch: a verifier asks for no more."""
        if self.ledger.found("steps") is None:
            self.ledger.charge(nothing(), why, steps=self.schedule.before(epoch))

    def epsilon(self) -> float | None:
        return self.purse.epsilon()


def _rows_read(batch: Batch, relations: int, reciprocal: bool) -> tuple[Tensor | None, Tensor | None]:
    """The rows an ordinary batch reads; None means all."""
    if isinstance(batch, QueryBatch):
        return None, batch.relation
    relation = batch.triples[:, 1]
    both = torch.cat([relation, relation + relations // 2]) if reciprocal else relation
    return torch.cat([batch.triples[:, 0], batch.triples[:, 2], batch.negatives.view(-1)]), both
