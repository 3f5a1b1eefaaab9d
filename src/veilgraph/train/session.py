"""One training from its configuration to its last state, whatever the regime.

none        ordinary training on every statement                       no guarantee
dropped     ordinary training on unrestricted statements only          ε = 0: confidential ones are never read
private     unrestricted statements as ever, confidential ones with noise
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from veilgraph import machine, models
from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.errors import VerificationError
from veilgraph.load.graph import Graph
from veilgraph.mark import unknown_relations, unrestricted
from veilgraph.models.base import Model
from veilgraph.rng import Streams
from veilgraph.runs import LEDGER
from veilgraph.train.loop import CHECKPOINT_SECONDS, Listener, Validation, run_epochs
from veilgraph.train.plan import OrdinaryPlan, Plan
from veilgraph.train.priors import attach_prior, leave_it_to_prior
from veilgraph.train.private.marginals import counting_of
from veilgraph.train.state import TrainingState


def regime(config: TrainConfig) -> str:
    """none, dropped or private."""
    if config.private:
        return "private"
    return "dropped" if config.drop_confidential else "none"


def visible(graph: Graph, config: TrainConfig) -> Graph:
    """The statements an ordinary step may read in this regime."""
    return graph if regime(config) == "none" else unrestricted(graph)


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
    machine.prepare(config.threads)
    streams = Streams(config.seed)
    public = visible(graph, config)
    model = models.create(config.model, config.dimension or 1, norm=config.norm)
    model.prepare(public.train, len(graph.relations))
    private = config.private_optimiser or "sgd" if regime(config) == "private" else None
    state = TrainingState.fresh(graph, model, config, streams, private)
    if private is not None and model.silent_at_zero:
        _silence(state, graph, config)
    if config.prior == "marginals":
        attach_prior(graph, public, config, state, folder, counting_of(graph, units), model.silent_at_zero)
        if private is not None and not config.private_steps and not len(public.train):
            leave_it_to_prior(state, model)
    if folder is not None:
        state.restore(folder)
    validation = Validation(public, model, config, streams)
    epochs = config.epochs or 0

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

    if private is None:
        run(OrdinaryPlan(public, model, config, streams), epochs)
        return state, model
    from veilgraph.train.private.setup import private_plan

    assert folder is not None, "a private training needs a ledger"
    ledger = Ledger(folder / LEDGER)
    if not ledger.lines or (state.ledger and not ledger.continues(state.ledger)):
        raise VerificationError(
            f"{folder / LEDGER} holds less than was spent before the checkpoint: nothing more may be spent. Train anew."
        )
    first = config.order == "unrestricted-first" and len(public.train) > 0
    if first and state.phase == 0:
        run(OrdinaryPlan(public, model, config, streams), epochs)
        state.next_phase()
        state.ledger = ledger.mark
        state.save(folder)
    if first:
        validation.wanted, public, epochs = False, public.with_splits({}), 1
    run(private_plan(graph, public, model, config, streams, ledger, units, epochs), epochs)
    return state, model


def _silence(state: TrainingState, graph: Graph, config: TrainConfig) -> None:
    """Relations that unrestricted statements never speak of start at zero: until they are learnt, the prior decides."""
    unknown = unknown_relations(graph)
    if config.reciprocal:
        unknown = np.concatenate([unknown, unknown + len(graph.relations)])
    if not graph.secret("train").all():  # public; else nothing would be learnt from zeros on both sides
        for p in (state.parameters, state.average):
            if p is not None:
                p.relations[torch.from_numpy(unknown)] = 0
