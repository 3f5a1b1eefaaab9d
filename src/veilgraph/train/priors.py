"""The prior of a training: counted once, charged before it is drawn, kept with the run."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from veilgraph.account.epsilon import spent
from veilgraph.account.events import nothing, together
from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.errors import BudgetError, VerificationError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.load.graph import Graph
from veilgraph.mark import unknown_relations
from veilgraph.models.base import Model
from veilgraph.models.prior import Prior
from veilgraph.run_files import LEDGER, MARGINALS
from veilgraph.runs import DELTA
from veilgraph.train.private.gauss import source
from veilgraph.train.private.marginals import MOST_ROLES, Counting, release
from veilgraph.train.private.measure import Meter
from veilgraph.train.state import TrainingState

WRITTEN = "noisy marginals are written"
OUTWEIGHS = 1000.0  # distances are below a hundred or so


def attach_prior(
    graph: Graph,
    public: Graph,
    config: TrainConfig,
    state: TrainingState,
    folder: Path | None,
    counting: Counting,
    silent: bool,
) -> None:
    """Give the state its prior: the one in the folder, or a new one.

    A charge pays for one release. Where a process died after the charge and before the counts were written (the file
    appears as a whole or not at all), nothing was released: they are drawn anew under the same charge. Once the ledger
    says that they were written, a missing file is refused.

    Models that zeros do not silence cannot keep quiet about relations unrestricted statements never speak of: there the
    counts are made to outweigh them, and elsewhere to say nothing (post-processing, by public facts).

    Reads confidential data: counts of statements, in a private run with noise. Releases: the prior, charged first.
    """
    path = folder / MARGINALS if folder is not None else None
    ledger: Ledger | None = None
    multiplier = (config.prior_noise or 0.0) if config.private else 0.0
    if config.private:
        assert folder is not None
        ledger = Ledger(folder / LEDGER)
        _pay(ledger, config, counting, folder)
    if path is not None and path.exists():
        prior = Prior.of(read_tensors(path)[0])
    else:
        counted = graph if config.private else public.with_marks(None)
        meter = _meter(ledger, config, counting) if ledger is not None else None
        prior = release(counted, public, counting, multiplier, meter)
        if config.private and not silent and len(public.train) and not config.private_steps:
            prior = _decisive(prior, graph)
        if path is not None:
            write_tensors(path, prior.tensors())
    if config.private:
        assert ledger is not None
        _remember(ledger)
    for p in (state.parameters, state.average):
        if p is not None:
            p.prior = prior


def _meter(ledger: Ledger, config: TrainConfig, counting: Counting) -> Meter:
    """What one release may draw on: the charge that is on the ledger."""
    meter = Meter(ledger, source(secure=config.secure_noise, insecure_seed=config.insecure_noise_seed))
    meter.paid(together(*counting.events(config.prior_noise or 0.0)))
    return meter


def _decisive(prior: Prior, graph: Graph) -> Prior:
    factor = torch.zeros(2 * prior.relations)
    unknown = torch.from_numpy(unknown_relations(graph))
    factor[torch.cat([unknown, unknown + prior.relations])] = OUTWEIGHS
    return prior.times(factor)


def _pay(ledger: Ledger, config: TrainConfig, counting: Counting, folder: Path) -> None:
    """Have the counts on the ledger, or see that they are."""
    event, there = together(*counting.events(config.prior_noise or 0.0)), (folder / MARGINALS).exists()
    if event in ledger.events:
        if not there and any(line["what"] == WRITTEN for line in ledger.lines):
            raise VerificationError(
                f"{folder / MARGINALS} is gone: the counts that were paid for cannot be drawn again. Train anew."
            )
        return
    if there:
        raise VerificationError(
            f"{folder / MARGINALS} is there, but the ledger does not charge it. Train anew."
        )
    check_counts(ledger, config, counting)
    ledger.charge(event, "noisy marginals")


def _remember(ledger: Ledger) -> None:
    """Write down that the counts exist: from now on they may not be drawn again."""
    if all(line["what"] != WRITTEN for line in ledger.lines):
        ledger.charge(nothing(), WRITTEN)


def check_counts(ledger: Ledger, config: TrainConfig, counting: Counting) -> None:
    """Raise if the counts would exceed the budget."""
    events = counting.events(config.prior_noise or 0.0)
    after = spent([*ledger.events, *events], config.delta or DELTA).epsilon
    if config.epsilon is not None and ledger.private and after > config.epsilon:
        raise BudgetError(
            f"noisy marginals with noise {config.prior_noise:.3g} would bring ε to {after:.3g}, beyond the budget of "
            f"{config.epsilon:g}. Raise --prior-noise or --epsilon, or use --prior none."
        )


def leave_it_to_prior(state: TrainingState, model: Model) -> None:
    """Tables under which every score is the prior's: relations of zeros, over vectors of the entities' roles.

    The vectors are post-processing of the noisy counts. Models that zeros do not silence get zeros for entities too.
    """
    for p in (state.parameters, state.average):
        if p is not None:
            p.relations.zero_()
            p.entities.zero_()
            if model.silent_at_zero and p.prior is not None:
                rows = role_vectors(p.prior, p.entities.shape[1])
                p.entities[:, : rows.shape[1]] = rows


def role_vectors(prior: Prior, dimension: int) -> Tensor:
    """For each entity its place among the strongest directions of the table of counts; empty for a large table."""
    table = prior.table
    if table is None or len(table) > MOST_ROLES:
        return torch.empty(prior.entities, 0)
    values, left = torch.linalg.eigh((table @ table.T).double())
    return (left[:, values > 0].flip(1)[:, :dimension].T.float() @ table).T.contiguous()
