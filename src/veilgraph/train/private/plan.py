"""A private training: unrestricted statements learn as ever, confidential ones through sampling, clipping and noise.

The only file that knows sampler, clip, mechanism *and* event, so that what is charged is what is done. ``PrivatePlan``
has the shape of ``OrdinaryPlan``: the loop does not know which of them it runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from veilgraph.account.calibrate import steps_left
from veilgraph.account.epsilon import COARSE, spent
from veilgraph.account.events import Event, nothing, repeated
from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.errors import BudgetError
from veilgraph.load.graph import Graph
from veilgraph.mark import may_be_confidential, unknown_relations
from veilgraph.mark.units import capped, units
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rng import Streams
from veilgraph.runs import DELTA
from veilgraph.train import negatives
from veilgraph.train.gradients import QueryBatch, TripleBatch
from veilgraph.train.optim import Optimiser
from veilgraph.train.plan import Batch, OrdinaryPlan, objective_of
from veilgraph.train.private import quantile
from veilgraph.train.private.clip import NOWHERE, Clip, ClippedSum, Into, Votes
from veilgraph.train.private.measure import Meter
from veilgraph.train.private.mechanisms import Step, Terms, mechanism_class
from veilgraph.train.private.sample import PoissonSampler, pieces
from veilgraph.train.private.stages import Stages
from veilgraph.train.private.sums import clipped_sum, filled, joined, shape

BLOCKS = 20  # steps are paid for in advance, in blocks that grow to this share of them: what a crash may lose
TOGETHER = 64  # steps whose negatives are drawn at once


class PrivateStep(NamedTuple):
    """The place of a private step in the schedule; its statements are drawn when it is taken."""

    number: int


class PrivatePlan:
    """Unrestricted batches and private steps, interleaved by a public schedule."""

    def __init__(
        self,
        graph: Graph,
        public: Graph,
        model: Model,
        config: TrainConfig,
        streams: Streams,
        ledger: Ledger,
        terms: Terms,
        meter: Meter,
        epochs: int,
    ) -> None:
        self.model, self.config, self.streams, self.ledger = model, config, streams, ledger
        self.terms, self.meter, self.epochs = terms, meter, max(epochs, 1)
        mechanism = mechanism_class(config.mechanism or "lazy")
        mechanism.refuse(config.private_optimiser or "sgd", terms.shrink)
        tables = config.private_parameters
        self.clip = Clip(
            config.clip or 1.0, tables != "relations", tables != "entities", _relation_rows(graph, config)
        )
        self.mechanism = mechanism(terms, self.clip, meter)
        self.guarantee, self.stages = mechanism.guarantee, Stages.of(config)
        self.ordinary = self._ordinary(public) if len(public.train) else None
        self.objective = (
            self.ordinary.objective if self.ordinary else objective_of(config, len(graph.entities))
        )
        statements = graph.train[graph.secret("train")]
        unit_of = units(graph)
        kept = capped(unit_of, terms.per_unit, meter.coins())
        self.statements = statements[kept].astype(np.int64)
        self.unit_of, self.units = unit_of[kept], terms.expected / terms.rate
        self.sampler = PoissonSampler(self.unit_of, terms.rate)
        self.clip_settled = False
        self.size = shape(terms.expected, config.private_negatives or config.negatives or 1)
        self.several, self.delta = terms.per_unit > 1, config.delta or DELTA
        self.entities = len(graph.entities)
        self.paid, self.block = 0, 1
        self.block_of_negatives, self.wrong = -1, torch.empty(0)
        self.losses: list[float] = []
        self.left: int | None = None  # steps the budget still allows
        self.shown, self.next_look = 0.0, 0.0  # ε as last looked up, and when to look again
        self.seconds = {"sample": 0.0, "gradient": 0.0, "update": 0.0}

    def _ordinary(self, public: Graph) -> OrdinaryPlan:
        return OrdinaryPlan(public, self.model, self.config, self.streams)

    moved = MappingProxyType(
        {"entities": "entities", "relations": "relations"}
    )  # tables, by what optimisers call them

    def _tables(self, p: Parameters) -> Parameters:
        """What private steps move."""
        return p

    # --- the schedule: public ------------------------------------------------------------------------------------
    @property
    def positives(self) -> float:
        """Statements read in an epoch, by what is public (for the speed that is shown)."""
        ordinary = len(self.ordinary.triples) if self.ordinary else 0
        private = self.terms.expected * (self.config.private_steps or 0) / self.epochs
        return ordinary + private

    def _private_between(self, done: int, of: int, epoch: int) -> range:
        """The private steps due in the ``done``-th of ``of`` stretches of an epoch."""
        total = self.config.private_steps or 0
        edges = [total * (epoch * of + step) // (self.epochs * of) for step in (done, done + 1)]
        return range(*edges)

    @property
    def steps_per_epoch(self) -> int:
        """Ordinary batches and private steps of a middling epoch."""
        ordinary = self.ordinary.steps_per_epoch if self.ordinary else 0
        return ordinary + -(-(self.config.private_steps or 0) // self.epochs)

    def batches(self, epoch: int) -> Iterator[Batch | PrivateStep]:
        """The steps of one epoch."""
        of = self.ordinary.steps_per_epoch if self.ordinary else 1
        ordinary: Iterator[Batch | None] = self.ordinary.batches(epoch) if self.ordinary else iter([None])
        for done, batch in enumerate(ordinary):
            if batch is not None:
                yield batch
            for number in self._private_between(done, of, epoch):
                yield PrivateStep(number)

    def tells(self, batch: Batch | PrivateStep) -> bool:
        """Whether a batch has a loss that may be shown: that of a private step is confidential."""
        return not isinstance(batch, PrivateStep)

    # --- a step ---------------------------------------------------------------------------------------------------
    def step(
        self, p: Parameters, optimisers: dict[str, Optimiser], batch: Batch | PrivateStep, rate: float
    ) -> float:
        """Take one step; returns the mean loss of an ordinary batch, 0 for a private step."""
        if not isinstance(batch, PrivateStep):
            assert self.ordinary is not None
            self.mechanism.catch_up(p, *_rows_read(batch, len(p.relations), self.objective.reciprocal))
            loss = self.ordinary.step(p, optimisers, batch, rate)
            for key, value in self.ordinary.seconds.items():
                self.seconds[key] += value
            self.ordinary.seconds = dict.fromkeys(self.ordinary.seconds, 0.0)
            return loss
        self._settle_clip(p)
        if not self._pay(batch.number):
            return 0.0
        self.mechanism.factor = self.stages.factor(batch.number)
        share = rate / (self.config.learning_rate or 1.0)
        return self.take(p, optimisers, batch, share * (self.config.private_learning_rate or 1.0))

    def _pay(self, number: int) -> bool:
        """Have this step on the ledger, and on disk, before it is taken; False if the budget does not allow it."""
        if self.paid == 0:
            if not self._charge(number, number + self.block):
                return False
            self.block = min(
                2 * self.block, max(1, (self.config.private_steps or 0) // BLOCKS)
            )  # public: no clock
        self.paid -= 1
        return True

    def steps_before(self, epoch: int) -> int:
        """How many private steps are due before an epoch: a function of public settings."""
        return (self.config.private_steps or 0) * epoch // self.epochs

    def pay_epochs(self, first: int, last: int) -> bool:
        """Have the steps of these epochs (``last`` not among them) on the ledger; False if the budget allows no step at all.

        For a training that is stopped and rebuilt between epochs: nothing is paid for that is not taken.
        """
        start, end = self.steps_before(first), self.steps_before(last)
        return end - start <= self.paid or self._charge(start + self.paid, end)

    def _charge(self, first: int, last: int) -> bool:
        """Pay for these steps, stage by stage, or for as many as the budget allows; whether that is any.

        Steps are taken in the order they are paid for, so each of them finds its own stage's payment.
        """
        before = self.paid
        for count, factor in self.stages.parts(first, min(last, max(self.stages.steps, first + 1))):
            event = step_event(self.config, self.terms, factor)
            wanted = min(count, self._affordable(event, count, first))
            if wanted:
                self.meter.pay(repeated(wanted, event), f"{wanted} private steps ({self.mechanism.name})")
                self.paid += wanted
                if self.left is not None:
                    self.left -= wanted
            if wanted < count:
                if self.ledger.found("spent") is None:
                    self.ledger.charge(nothing(), "the budget allows no further step", spent=True)
                break
        return self.paid > before

    def _affordable(self, event: Event, count: int, first: int) -> int:
        """How many of these steps the budget allows; looked up once, unless it ends within a schedule of several stages."""
        if self.left is not None:
            return self.left
        config, total = self.config, self.stages.steps
        if config.epsilon is None or not self.ledger.private or self.guarantee != "dp":
            self.left = total
            return total
        events = list(self.ledger.events)
        if config.clip_quantile is not None and self.ledger.found("clip") is None:
            events.append(quantile.event(self.units))  # will be paid before the first step
        if self.stages.count == 1:
            self.left = steps_left(events, event, config.epsilon, self.delta, total)
            return self.left
        rest = [
            repeated(times, step_event(config, self.terms, factor))
            for times, factor in self.stages.parts(first, total)
        ]
        if spent([*events, *rest], self.delta).epsilon <= config.epsilon:
            self.left = total
            return total
        return steps_left(events, event, config.epsilon, self.delta, count)

    def _settle_clip(self, p: Parameters) -> None:
        """The clip norm at a private quantile of the gradient norms, once: charged, then drawn, then written down."""
        share = self.config.clip_quantile
        if share is None or self.clip_settled:
            return
        found = self.ledger.found("clip")
        if found is None:
            event, budget = quantile.event(self.units), self.config.epsilon
            after = spent([*self.ledger.events, event], self.delta).epsilon
            if budget is not None and self.ledger.private and after > budget:
                raise BudgetError(
                    f"finding a clip norm would bring ε to {after:.3g}, beyond the budget of {budget:g}. "
                    "Set --clip instead of --clip-quantile, or raise --epsilon."
                )
            sampler = PoissonSampler(self.unit_of, quantile.rate(self.units))
            chosen, owner, token = sampler.draw(self.meter.coins())
            statements = torch.from_numpy(self.statements.take(chosen, 0))
            self.mechanism.catch_up(p, None, None)
            norms = self.total(p, statements, torch.from_numpy(owner), self.negatives(0), NOWHERE).norms
            found = quantile.quantile(norms.numpy(), share, self.meter, token)
            self.ledger.charge(nothing(), "clip norm", clip=found)
        self.clip = replace(self.clip, norm=found)
        self.mechanism.clip = self.clip
        self.clip_settled = True

    def take(self, p: Parameters, optimisers: dict[str, Optimiser], batch: PrivateStep, rate: float) -> float:
        """A private step that was paid for."""
        began = time.perf_counter()
        chosen, owner, token = self.sampler.draw(self.meter.coins())
        wrong = self.negatives(batch.number)
        statements = torch.from_numpy(self.statements.take(chosen, 0))
        relation = statements[:, 1]
        if self.objective.reciprocal:
            relation = torch.cat([relation, relation + len(p.relations) // 2])
        read = torch.cat([statements[:, 0], statements[:, 2], wrong.view(-1)])
        drawn = time.perf_counter()
        tables = self._tables(p)
        self.mechanism.catch_up(tables, read, relation)
        total = self.total(p, statements, torch.from_numpy(owner), wrong, self.mechanism.into(tables, rate))
        summed = time.perf_counter()
        private = {name: optimisers[f"private.{own}"] for name, own in self.moved.items()}
        self.mechanism.release(tables, private, Step(total, wrong.view(-1), rate, token))
        ended = time.perf_counter()
        for key, value in (
            ("sample", drawn - began),
            ("gradient", summed - drawn),
            ("update", ended - summed),
        ):
            self.seconds[key] += value
        self.losses.append(total.loss / self.terms.expected)
        return 0.0  # the loss is confidential: for the trace alone, never for a checkpoint

    def negatives(self, number: int) -> Tensor:
        """The negatives of a step; drawn for several steps at a time, from the step's number alone."""
        block, place = divmod(number, TOGETHER)
        if block != self.block_of_negatives:
            drawing = self.streams.numpy("private", block)
            count = self.config.private_negatives or self.config.negatives or 1
            drawn = negatives.draw_two_sides(drawing, TOGETHER, count, self.entities)
            self.wrong = torch.from_numpy(np.stack(np.split(drawn, 2), 1))
            self.block_of_negatives = block
        return self.wrong[place]

    def total(
        self, p: Parameters, statements: Tensor, owner: Tensor, wrong: Tensor, into: Into
    ) -> ClippedSum:
        """The clipped sum of a batch of any size, piece by piece."""
        parts = []
        for piece in pieces(owner.numpy(), self.size):
            rows, whose = statements[piece], owner[piece] - owner[piece][0]
            batch, unit = filled(rows, whose, wrong, self.size)
            found = self._clipped(p, batch, unit if self.several else None, into)
            parts.append(found._replace(norms=found.norms[: int(whose[-1]) + 1]))
        tables = self._tables(p)
        votes = None
        if self.mechanism.wants_votes:
            votes = _votes(statements, owner, self.entities, self.terms.per_unit)
        return ClippedSum(
            joined([part.entities for part in parts], tables.entities) if self.clip.entities else None,
            joined([part.relations for part in parts], tables.relations) if self.clip.relations else None,
            self.clip.norm,
            sum(part.loss for part in parts),
            torch.cat([part.norms for part in parts]) if parts else torch.empty(0),
            votes,
        )

    def _clipped(self, p: Parameters, batch: TripleBatch, unit: Tensor | None, into: Into) -> ClippedSum:
        """The clipped sum of one piece."""
        return clipped_sum(self.model, p, batch, unit, self.objective, self.clip, into)

    def ledger_mark(self) -> str:
        """Length and hash of the ledger."""
        return self.ledger.mark

    def record(self) -> dict[str, float]:
        """The mean loss of the epoch's private steps: for the curator."""
        found, self.losses = self.losses, []
        return {"private_loss": float(np.mean(found))} if found else {}

    def flush(self, p: Parameters) -> None:
        """Before anything leaves the trainer: all noise is in the tables."""
        self.mechanism.flush(p)

    def epsilon(self) -> float | None:
        """ε so far at the run's δ (looked up again when that takes little of the time passed); None where nothing is promised."""
        began = time.perf_counter()
        if began >= self.next_look:
            self.shown = spent(self.ledger.events, self.delta, grid=COARSE).epsilon
            now = time.perf_counter()
            self.next_look = now + 20 * (now - began)
        return self.shown if np.isfinite(self.shown) else None


def _relation_rows(graph: Graph, config: TrainConfig) -> Tensor:
    """The relation rows private steps move: those a confidential statement can be about, by the marking's rules.

    Where only relations are private, those that unrestricted statements teach already are left to them. Both are public.
    """
    possible = np.flatnonzero(may_be_confidential(graph))
    unknown = unknown_relations(graph)
    if config.private_parameters == "relations" and len(unknown):
        possible = unknown
    both = (possible, possible + len(graph.relations)) if config.reciprocal else (possible,)
    return torch.from_numpy(np.concatenate(both))


def _votes(statements: Tensor, owner: Tensor, entities: int, per_unit: int) -> Votes:
    """The entities of the units' own statements, and how many units have each: a unit has at most 2·m, one vote each."""
    pairs = torch.unique(
        torch.cat([owner * entities + statements[:, 0], owner * entities + statements[:, 2]])
    )
    ids, counts = torch.unique(pairs % entities, return_counts=True)
    return Votes(ids, counts, math.sqrt(2 * per_unit))


def _rows_read(batch: Batch, relations: int, reciprocal: bool) -> tuple[Tensor | None, Tensor | None]:
    """The rows an ordinary batch reads; None means all."""
    if isinstance(batch, QueryBatch):
        return None, batch.relation
    relation = batch.triples[:, 1]
    both = torch.cat([relation, relation + relations // 2]) if reciprocal else relation
    return torch.cat([batch.triples[:, 0], batch.triples[:, 2], batch.negatives.view(-1)]), both


def step_event(config: TrainConfig, terms: Terms, factor: float = 1.0) -> Event:
    """What one private step of a configuration costs, with so much of its noise."""
    mechanism = mechanism_class(config.mechanism or "lazy")
    return mechanism.event(replace(terms, noise_multiplier=factor * terms.noise_multiplier))


def all_steps(config: TrainConfig, terms: Terms, steps: int | None = None) -> list[Event]:
    """What all private steps of a configuration cost (or the first ones): an event for each stage."""
    stages = Stages.of(config)
    return [
        repeated(count, step_event(config, terms, factor))
        for count, factor in stages.parts(0, stages.steps if steps is None else min(steps, stages.steps))
    ]
