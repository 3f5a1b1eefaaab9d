"""The prior of a training: counted once, charged before it is drawn, kept with the run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from veilgraph.account.events import nothing
from veilgraph.account.ledger import Ledger
from veilgraph.account.prices import MOST_ROLES, Counting
from veilgraph.account.promise import Promise
from veilgraph.errors import VerificationError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.layout import MARGINALS
from veilgraph.load.graph import Graph
from veilgraph.mark.rules import unknown_relations
from veilgraph.models.base import Model
from veilgraph.models.prior import Prior
from veilgraph.noise.gauss import Noise
from veilgraph.noise.measure import Meter
from veilgraph.release.counts import release
from veilgraph.train.state import TrainingState

WRITTEN = "noisy marginals are written"
OUTWEIGHS = 1000.0  # distances are below a hundred or so


class Counts(NamedTuple):
    """How a training counts: under a promise with its noise, from its ledger; else exactly what may be read."""

    graph: Graph
    public: Graph
    promise: Promise | None = None
    ledger: Ledger | None = None
    noise: Noise | None = None


def attach_prior(given: Counts, state: TrainingState, folder: Path | None, *, decisive: bool) -> None:
    """Give the state its prior: the one in the folder, or a new one.

    A charge pays for one release. Where a process died after the charge and before the counts were written (the file
    appears as a whole or not at all), nothing was released: they are drawn anew under the same charge. Once the ledger
    says that they were written, a missing file is refused.

    Models that zeros do not silence cannot keep quiet about relations unrestricted statements never speak of: there the
    counts are made to outweigh them, and elsewhere to say nothing (post-processing, by public facts).

    Reads confidential data: counts of statements, in a private run with noise. Releases: the prior, charged first.
    """
    path = folder / MARGINALS if folder is not None else None
    promise, ledger = given.promise, given.ledger
    if promise is not None:
        assert ledger is not None
        assert path is not None
        _pay(ledger, promise, path)
    if path is not None and path.exists():
        prior = Prior.of(read_tensors(path)[0])
    else:
        prior = _counted(given)
        if promise is not None and decisive:
            prior = _decisive(prior, given.graph)
        if path is not None:
            write_tensors(path, prior.tensors())
    if ledger is not None:
        _remember(ledger)
    for p in (state.parameters, state.average):
        if p is not None:
            p.prior = prior


def _counted(given: Counts) -> Prior:
    """Of confidential statements under the charge that is on the ledger; of others exactly."""
    graph, public = given.graph, given.public
    if given.promise is None or given.ledger is None or given.noise is None:
        sizes = Counting(0.0, 1, len(graph.entities), len(graph.relations))
        return release(public.with_marks(None), public, sizes, 0.0, None)
    meter = Meter(given.ledger, given.noise)
    meter.paid(given.promise.counted)
    return release(graph, public, given.promise.counting, given.promise.prior_noise or 0.0, meter)


def _decisive(prior: Prior, graph: Graph) -> Prior:
    factor = torch.zeros(2 * prior.relations)
    unknown = torch.from_numpy(unknown_relations(graph))
    factor[torch.cat([unknown, unknown + prior.relations])] = OUTWEIGHS
    return prior.times(factor)


def _pay(ledger: Ledger, promise: Promise, path: Path) -> None:
    """Have the counts on the ledger, or see that they are."""
    event, there = promise.counted, path.exists()
    if event in ledger.events:
        if not there and any(line["what"] == WRITTEN for line in ledger.lines):
            raise VerificationError(
                f"{path} is gone: the counts that were paid for cannot be drawn again. Train anew."
            )
        return
    if there:
        raise VerificationError(f"{path} is there, but the ledger does not charge it. Train anew.")
    promise.check_counts(ledger)
    ledger.charge(event, "noisy marginals")


def _remember(ledger: Ledger) -> None:
    """Write down that the counts exist: from now on they may not be drawn again."""
    if all(line["what"] != WRITTEN for line in ledger.lines):
        ledger.charge(nothing(), WRITTEN)


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
