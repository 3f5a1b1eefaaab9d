"""One training from its configuration to its last state, whatever the regime.

none        ordinary training on every statement                       no guarantee
dropped     ordinary training on unrestricted statements only          ε = 0: confidential ones are never read
private     unrestricted statements as ever, confidential ones with noise
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from veilgraph import machine, models
from veilgraph.account.ledger import Ledger
from veilgraph.account.promise import Promise
from veilgraph.config import Settled, TrainConfig, settle
from veilgraph.errors import VerificationError
from veilgraph.layout import LEDGER
from veilgraph.load.graph import Graph
from veilgraph.mark.rules import unknown_relations, unrestricted
from veilgraph.models.base import Model
from veilgraph.models.prior import Prior
from veilgraph.noise.gauss import Noise, source
from veilgraph.noise.measure import Meter
from veilgraph.rng import Streams
from veilgraph.run.facts import sizes_of
from veilgraph.run.run import Run
from veilgraph.train.answers import Answers, AnswersPlan
from veilgraph.train.loop import CHECKPOINT_SECONDS, Listener, Validation, run_epochs
from veilgraph.train.plan import OrdinaryPlan, Plan
from veilgraph.train.priors import Counts, attach_prior, leave_it_to_prior
from veilgraph.train.private.batches import PrivateBatches, relation_rows
from veilgraph.train.private.clip import Clip
from veilgraph.train.private.plan import PrivatePlan, Secret
from veilgraph.train.rows import GraphRows, Rows, TableRows, TextRows
from veilgraph.train.state import TrainingState
from veilgraph.train.tasks import Labelled, Links, Task
from veilgraph.train.tasks.links import objective_of

TEACHING = (
    1.0  # of the epochs, for a model that weighs answers: with half of them a third of what they gain is lost
)
FOLDS = 2  # of answers, where they teach who weighs the others
Runner = Callable[[Path | None], Callable[[Plan, int], None]]


def visible(graph: Graph, config: TrainConfig) -> Graph:
    """The statements an ordinary step may read in this regime."""
    return graph if config.regime == "none" else unrestricted(graph)


def kind_of(config: TrainConfig) -> type[Rows]:
    """Where the rows of a training come from."""
    if config.encoder is not None:
        return GraphRows
    return TableRows if config.text is None else TextRows


@dataclass
class Session:
    """A training that was begun: everything its steps need, from the start or from the folder's checkpoint."""

    graph: Graph
    public: Graph  # what an ordinary step may read
    settings: Settled
    folder: Path | None
    promise: Promise | None  # of a private training
    ledger: Ledger | None
    streams: Streams
    model: Model
    rows: Rows
    state: TrainingState

    @classmethod
    def open(
        cls, graph: Graph, config: TrainConfig, folder: Path | None = None, units: float = 0.0
    ) -> Session:
        """``units`` is the noisy number of units of a private training.

        Reads confidential data: for the counts of a prior, charged. Releases: nothing by itself.
        """
        machine.prepare(config.threads)
        settings, streams, public = settle(config), Streams(config.seed), visible(graph, config)
        scorer = settings.scorer
        model = models.create(scorer.name, scorer.dimension, norm=scorer.norm)
        model.prepare(public.train, len(graph.relations))
        if scorer.reciprocal and model.relation_scale is not None:
            model.relation_scale = model.relation_scale.repeat(2)
        promise = ledger = None
        if settings.private is not None:
            assert folder is not None, "a private training needs a ledger"
            promise = Promise.of(config.as_dict(), {"units": units, **sizes_of(graph)})
            ledger = Ledger(folder / LEDGER)
        rows = _rows(graph, public, config, settings, model, streams)
        task = _labels(public, settings)
        state = TrainingState.fresh(graph, model, settings, streams, rows, task)
        opened = cls(graph, public, settings, folder, promise, ledger, streams, model, rows, state)
        opened._begin()
        if folder is not None:
            state.restore(folder)
        opened._require_a_ledger_that_goes_on()
        return opened

    def _begin(self) -> None:
        """Give the state its counts, and relations a start that does not speak before it has learnt."""
        silent = self.model.silent_at_zero
        self._silence()
        if self.settings.counts:
            self._count(silent=silent)
        answers = self.answers
        if answers is not None:
            noise = self._noise()
            assert self.ledger is not None
            assert noise is not None
            answers.drawn(self.ledger, noise, self.state.parameters.prior)

    def _silence(self) -> None:
        """Relations that unrestricted statements never speak of start at zero: until they are learnt, the prior decides."""
        if not (self.private and self.model.silent_at_zero):
            return
        unknown = unknown_relations(self.graph)
        if self.settings.scorer.reciprocal:
            unknown = np.concatenate([unknown, unknown + len(self.graph.relations)])
        asks = self.promise is not None and self.promise.asks
        if len(self.public.train) or asks:  # public; else steps would learn nothing from zeros on both sides
            for p in (self.state.parameters, self.state.average):
                if p is not None:
                    p.relations[torch.from_numpy(unknown)] = 0

    def _count(self, *, silent: bool) -> None:
        counts = Counts(self.graph, self.public, self.promise, self.ledger, self._noise())
        alone = self.promise is not None and not self.promise.steps and not self.promise.asks
        attach_prior(
            counts, self.state, self.folder, decisive=alone and not silent and len(self.public.train) > 0
        )
        if not self.learns:
            leave_it_to_prior(self.state, self.model)

    @property
    def answers(self) -> Answers | None:
        """What confidential statements answer, where cells are asked about."""
        if self.promise is None or not self.promise.asks:
            return None
        assert self.folder is not None
        return Answers(self.graph, self.public, self.promise, self.folder)

    def _require_a_ledger_that_goes_on(self) -> None:
        """Raise if the ledger holds less than the checkpoint says was spent."""
        if self.ledger is None:
            return
        if not self.ledger.lines or (self.state.ledger and not self.ledger.continues(self.state.ledger)):
            raise VerificationError(
                f"{self.ledger.path} holds less than was spent before the checkpoint: nothing more may be spent. "
                "Train anew."
            )

    @property
    def private(self) -> bool:
        """Whether confidential statements are learnt from, with noise."""
        return self.promise is not None

    @property
    def learns(self) -> bool:
        """Whether any step will be taken; else all of the budget is in noisy counts, and vectors say nothing beside them."""
        if self.promise is None or self.promise.asks:
            return True
        return bool(self.promise.steps) or len(self.public.train) > 0

    def _noise(self) -> Noise | None:
        """Fresh noise, which no other part of the training draws from."""
        chosen, threads = self.settings.private, self.settings.threads
        if chosen is None:
            return None
        return source(secure=chosen.secure, insecure_seed=chosen.seed, threads=threads)

    @cached_property
    def task(self) -> Task:
        """What is learnt from as it is."""
        told = _labels(self.public, self.settings)
        return told if told is not None else self.links(self.public)

    def links(self, graph: Graph) -> Links:
        """The statements of a graph, to be learnt as they are."""
        return Links(graph, self.model, self.settings, self.streams, self.rows.candidates)

    def plan(self) -> Plan:
        """Of all that is learnt from."""
        return self.ordinary_plan() if self.promise is None else self.private_plan()

    def answers_plan(self, graph: Graph) -> AnswersPlan:
        """Of statements that are public, or were made so, in a training that promises something."""
        assert self.ledger is not None
        assert self.promise is not None
        rate = self.settings.steps.rate
        return AnswersPlan(self.links(graph), self.rows, rate, self.ledger, self.promise.delta)

    def keep(self) -> None:
        """Write a checkpoint between two phases."""
        assert self.ledger is not None
        assert self.folder is not None
        self.state.ledger = self.ledger.mark
        self.state.save(self.folder)

    def attach(self, prior: Prior | None) -> None:
        """Have these counts added to every score from now on, if there are any."""
        for p in (self.state.parameters, self.state.average, self.state.best):
            if p is not None and prior is not None:
                p.prior = prior

    def again(self) -> None:
        """Begin anew, with the counts that are there: what was learnt so far has taught what it should."""
        prior, phase = self.state.parameters.prior, self.state.phase + 1
        self.state = TrainingState.fresh(self.graph, self.model, self.settings, self.streams, self.rows)
        self.state.phase = phase
        for p in (self.state.parameters, self.state.average):
            if p is not None:
                p.prior = prior
        self._silence()

    def ordinary_plan(self) -> OrdinaryPlan:
        """Of the statements that may be read as they are."""
        return OrdinaryPlan(self.task, self.rows, self.settings.steps.rate)

    def private_plan(self, *, alone: bool = False) -> PrivatePlan:
        """Of the confidential statements, with fresh noise: ``alone`` within one epoch, or among ordinary steps over all of them."""
        promise, chosen, noise = self.promise, self.settings.private, self._noise()
        assert promise is not None
        assert chosen is not None
        assert noise is not None
        assert self.ledger is not None
        meter = Meter(self.ledger, noise)
        rows = relation_rows(self.graph, chosen.tables, reciprocal=self.settings.scorer.reciprocal)
        clip = Clip(chosen.clip, chosen.tables != "relations", chosen.tables != "entities", rows)
        confidential = PrivateBatches(
            self.graph,
            promise.per_unit,
            promise.sample_rate,
            meter.coins(),
            self.streams,
            chosen.negatives,
            self.rows.candidates,
        )
        objective = objective_of(self.settings, len(self.graph.entities))
        secret = Secret(promise, chosen, meter, confidential, clip, objective)
        ordinary = None if alone or not len(self.public.train) else self.ordinary_plan()
        return PrivatePlan(
            self.model, self.rows, secret, ordinary, 1 if alone else self.settings.steps.epochs
        )


def _rows(
    graph: Graph, public: Graph, config: TrainConfig, settings: Settled, model: Model, streams: Streams
) -> Rows:
    if settings.encoder is not None:
        return GraphRows(public, model.entity_width, settings.encoder, streams)
    if settings.text is not None:
        return TextRows(graph, public, config, settings.text, model.entity_width, streams)
    return TableRows()


def _labels(public: Graph, settings: Settled) -> Labelled | None:
    """The task, where labels of entities are learnt."""
    asked = settings.encoder is not None and settings.encoder.task == "labels"
    return Labelled(public, settings.seed) if asked else None


def run_training(
    graph: Graph,
    config: TrainConfig,
    folder: Path | None = None,
    *,
    units: float = 0.0,
    listener: Listener | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> tuple[TrainingState, Model]:
    """Train from the start, or from the folder's checkpoint, to the end; ``units`` is the noisy number of units.

    Reads confidential data: in regime ``none`` every statement, in ``private`` through the plan alone, in ``dropped``
    none. Releases: the state it returns, with the guarantee of the regime.
    """
    session = Session.open(graph, config, folder, units)
    _run(session, listener, checkpoint_seconds)
    return session.state, session.model


def _validation(session: Session) -> Validation:
    return Validation(session.public, session.model, session.settings, session.streams)


def _runner(session: Session, validation: Validation, listener: Listener | None, seconds: float) -> Runner:
    """Takes the steps of a plan, so many epochs of them, with checkpoints in a folder if one is given."""

    def into(folder: Path | None) -> Callable[[Plan, int], None]:
        def run(plan: Plan, epochs: int) -> None:
            run_epochs(
                plan,
                session.state,
                validation,
                session.settings,
                folder,
                epochs=epochs,
                listener=listener,
                checkpoint_seconds=seconds,
            )

        return run

    return into


def _run(session: Session, listener: Listener | None, checkpoint_seconds: float) -> None:
    """All phases of a training: one, or unrestricted statements first and private steps after them."""
    state, settings, epochs = session.state, session.settings, session.settings.steps.epochs
    validation = _validation(session)
    runner = _runner(session, validation, listener, checkpoint_seconds)
    run = runner(session.folder)
    private = settings.private
    if session.answers is not None:
        _learn_answers(session, runner)
        return
    if private is None or not (private.first and len(session.public.train)):
        plan: Plan = session.plan()
        run(plan, epochs)
    else:
        if state.phase == 0:
            run(session.ordinary_plan(), epochs)
            state.next_phase()
            session.keep()
        validation.wanted, epochs = False, 1
        plan = session.private_plan(alone=True)
        run(plan, epochs)
    if state.epoch < epochs:
        plan.end(state.epoch, "stopped early: validation on unrestricted statements stalled")


def _learn_answers(session: Session, runner: Runner) -> None:
    """What was answered yes is learnt with unrestricted statements, by a model that begins anew."""
    answers = session.answers
    assert answers is not None
    if session.state.phase == 0:
        _weigh(session, answers, runner)
        if session.settings.private is not None and session.settings.private.counts_public:
            answers.count()
        session.again()
        session.keep()
    session.attach(answers.counted)
    runner(session.folder)(session.answers_plan(answers.learnt()), session.settings.steps.epochs)


def _weigh(session: Session, answers: Answers, runner: Runner) -> None:
    """A model of unrestricted statements says how probable what was answered is.

    Of relations that those never speak of it knows nothing: there two more are taught, each without half of the answers, and speak of
    that half.
    """
    prior, epochs = session.state.parameters.prior, max(1, round(TEACHING * session.settings.steps.epochs))
    teachers, reciprocal = [], session.settings.scorer.reciprocal
    if len(session.public.train) and session.model.separable:
        runner(session.folder)(session.answers_plan(session.public), epochs)
        teachers = [(session.model, session.state.result, reciprocal)]
    answers.weigh(prior, teachers, session.streams)
    if not session.model.separable or not len(unknown_relations(session.graph)):
        return
    teachers, phase = [], session.state.phase
    for fold in range(FOLDS):
        session.again()
        taught = answers.learnt((fold, FOLDS), prior)
        if len(taught.train):
            runner(None)(session.answers_plan(taught), epochs)
        teachers.append((session.model, session.state.result, reciprocal))
    session.state.phase = phase
    answers.weigh(prior, teachers, session.streams)


def weighed(run: Run, graph: Graph, listener: Listener | None = None) -> Answers:
    """The answers of a run that was begun, charged and drawn, with how probable each statement is; nothing is learnt from them yet.

    Reads confidential data: which cells hold a confidential statement. Releases: the answers.
    """
    session = Session.open(graph, run.config, run.folder, float(run.facts["units"]))
    answers = session.answers
    assert answers is not None, "a release is of mechanism respond"
    _weigh(session, answers, _runner(session, _validation(session), listener, CHECKPOINT_SECONDS))
    return answers
