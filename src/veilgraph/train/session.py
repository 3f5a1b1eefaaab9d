"""One training from its configuration to its last state, whatever the regime.

none        ordinary training on every statement                       no guarantee
dropped     ordinary training on unrestricted statements only          ε = 0: confidential ones are never read
private     unrestricted statements as ever, confidential ones with noise
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from veilgraph import machine, models
from veilgraph.account.events import nothing
from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.errors import VerificationError
from veilgraph.load.graph import Graph
from veilgraph.mark import unknown_relations, unrestricted
from veilgraph.models.base import Model
from veilgraph.rng import Streams
from veilgraph.run_files import LEDGER
from veilgraph.train.loop import CHECKPOINT_SECONDS, Listener, Validation, run_epochs
from veilgraph.train.plan import OrdinaryPlan, Plan
from veilgraph.train.priors import attach_prior, leave_it_to_prior
from veilgraph.train.private.marginals import counting_of
from veilgraph.train.state import TrainingState

if TYPE_CHECKING:
    from veilgraph.models.text.rows import Described
    from veilgraph.train.private.plan import PrivatePlan


def regime(config: TrainConfig) -> str:
    """none, dropped or private."""
    if config.private:
        return "private"
    return "dropped" if config.drop_confidential else "none"


def visible(graph: Graph, config: TrainConfig) -> Graph:
    """The statements an ordinary step may read in this regime."""
    return graph if regime(config) == "none" else unrestricted(graph)


@dataclass
class Session:
    """A training that was begun: everything its steps need, from the start or from the folder's checkpoint."""

    graph: Graph
    public: Graph  # what an ordinary step may read
    config: TrainConfig
    folder: Path | None
    units: float  # a noisy number
    streams: Streams
    model: Model
    state: TrainingState
    described: Described | None = None  # how entity rows are made, where they are made from descriptions

    @classmethod
    def open(
        cls, graph: Graph, config: TrainConfig, folder: Path | None = None, units: float = 0.0
    ) -> Session:
        """Reads confidential data: for the counts of a prior, charged. Releases: nothing by itself."""
        machine.prepare(config.threads)
        streams = Streams(config.seed)
        public = visible(graph, config)
        model = models.create(config.model, config.dimension or 1, norm=config.norm)
        model.prepare(public.train, len(graph.relations))
        private = config.private_optimiser or "sgd" if regime(config) == "private" else None
        made, weights = None, None
        if config.text is not None:
            from veilgraph.train.text import described

            made, weights = described(graph, public, config, model.entity_width, streams.numpy("init", 1))
        state = TrainingState.fresh(graph, model, config, streams, private, weights)
        if private is not None and model.silent_at_zero:
            _silence(state, graph, config)
        if config.prior == "marginals":
            counting = counting_of(graph, units)
            attach_prior(graph, public, config, state, folder, counting, model.silent_at_zero)
        opened = cls(graph, public, config, folder, units, streams, model, state, made)
        if config.prior == "marginals" and not opened.learns:
            leave_it_to_prior(state, model)
        if folder is not None:
            state.restore(folder)
        return opened

    @property
    def private(self) -> bool:
        """Whether confidential statements are learnt from, with noise."""
        return regime(self.config) == "private"

    @property
    def learns(self) -> bool:
        """Whether any step will be taken; else all of the budget is in noisy counts, and vectors say nothing beside them."""
        return not self.private or bool(self.config.private_steps) or len(self.public.train) > 0

    @property
    def ledger(self) -> Ledger:
        """Of a private training; refused if it holds less than the checkpoint says was spent."""
        assert self.folder is not None, "a private training needs a ledger"
        found = Ledger(self.folder / LEDGER)
        if not found.lines or (self.state.ledger and not found.continues(self.state.ledger)):
            raise VerificationError(
                f"{self.folder / LEDGER} holds less than was spent before the checkpoint: nothing more may be spent. "
                "Train anew."
            )
        return found

    def ordinary_plan(self) -> OrdinaryPlan:
        """Of the statements that may be read as they are."""
        if self.config.encoder is not None:
            from veilgraph.train.encoder import encoded_plan

            return encoded_plan(self.public, self.model, self.config, self.streams)
        if self.described is not None:
            from veilgraph.train.text import TextPlan

            return TextPlan(self.public, self.model, self.config, self.streams, self.described)
        return OrdinaryPlan(self.public, self.model, self.config, self.streams)

    def private_plan(self, public: Graph, epochs: int) -> PrivatePlan:
        """Of the confidential statements, and of these others; private steps are spread over so many epochs."""
        from veilgraph.train.private.setup import private_plan

        return private_plan(
            self.graph,
            public,
            self.model,
            self.config,
            self.streams,
            self.ledger,
            self.units,
            epochs,
            self.described,
        )


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
    state, public, epochs = session.state, session.public, config.epochs or 0
    validation = Validation(public, session.model, config, session.streams)

    def run(plan: Plan, epochs: int) -> None:
        run_epochs(
            plan,
            state,
            validation,
            config,
            folder,
            epochs=epochs,
            listener=listener,
            checkpoint_seconds=checkpoint_seconds,
        )

    if not session.private:
        run(session.ordinary_plan(), epochs)
        return state, session.model
    assert folder is not None
    ledger = session.ledger
    first = config.order == "unrestricted-first" and len(public.train) > 0
    if first and state.phase == 0:
        run(session.ordinary_plan(), epochs)
        state.next_phase()
        state.ledger = ledger.mark
        state.save(folder)
    if first:
        validation.wanted, public, epochs = False, public.with_splits({}), 1
    plan = session.private_plan(public, epochs)
    run(plan, epochs)
    if state.epoch < epochs and plan.ledger.found("steps") is None:
        plan.ledger.charge(
            nothing(),
            "stopped early: validation on unrestricted statements stalled",
            steps=plan.steps_before(state.epoch),
        )
    return state, session.model


def _silence(state: TrainingState, graph: Graph, config: TrainConfig) -> None:
    """Relations that unrestricted statements never speak of start at zero: until they are learnt, the prior decides."""
    unknown = unknown_relations(graph)
    if config.reciprocal:
        unknown = np.concatenate([unknown, unknown + len(graph.relations)])
    if not graph.secret("train").all():  # public; else nothing would be learnt from zeros on both sides
        for p in (state.parameters, state.average):
            if p is not None:
                p.relations[torch.from_numpy(unknown)] = 0
