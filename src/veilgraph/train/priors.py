"""The prior of a training: counted once, charged before it is drawn, kept with the run."""

from __future__ import annotations

from pathlib import Path

from veilgraph.account.epsilon import spent
from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.errors import BudgetError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.load.graph import Graph
from veilgraph.models.prior import Prior
from veilgraph.runs import DELTA, LEDGER, MARGINALS
from veilgraph.train.private import marginals
from veilgraph.train.private.gauss import source
from veilgraph.train.state import TrainingState


def attach_prior(
    graph: Graph, public: Graph, config: TrainConfig, state: TrainingState, folder: Path | None
) -> None:
    """Give the state its prior: the one in the folder, or a new one.

    Reads confidential data: counts of statements, in a private run with noise. Releases: the prior, charged first.
    """
    path = folder / MARGINALS if folder is not None else None
    if path is not None and path.exists():
        prior = Prior.of(read_tensors(path)[0])
    else:
        noise = source(secure=config.secure_noise, insecure_seed=config.insecure_noise_seed)
        multiplier = 0.0
        if config.private:
            assert folder is not None
            multiplier = config.prior_noise or 0.0
            ledger, event = Ledger(folder / LEDGER), marginals.event(multiplier)
            after = spent([*ledger.events, event], config.delta or DELTA).epsilon
            if config.epsilon is not None and ledger.private and after > config.epsilon:
                raise BudgetError(
                    f"noisy marginals with noise {multiplier:.3g} would bring ε to {after:.3g}, beyond the budget of "
                    f"{config.epsilon:g}. Raise --prior-noise or --epsilon, or use --prior none."
                )
            ledger.charge(event, "noisy marginals")
        counted = graph if config.private else public.with_marks(None)
        prior = marginals.release(counted, public, multiplier, noise)
        if path is not None:
            write_tensors(path, prior.tensors())
    for p in (state.parameters, state.average):
        if p is not None:
            p.prior = prior
