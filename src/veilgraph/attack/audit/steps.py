"""A white-box audit: the noisy sums themselves, step by step, on tables the auditor chose.

Whoever sees every noisy sum sees more than whoever sees the vectors they make, and a promise holds for him too. Tables are such that
a canary's clipped gradient lies where little else is, and is as long as clipping allows; they go back to where they were after every
step, so that steps are alike and as many can be taken as the audit needs. The run's own code draws the batches, clips, adds
noise and pays. What is found is how much less noise a step has than it is charged for, and how much more often units are drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from veilgraph.account.events import repeated
from veilgraph.attack.audit.trials import FEWEST, Trials
from veilgraph.models.parameters import Parameters
from veilgraph.noise.sample import Drawn, PoissonSampler
from veilgraph.train.optim import SGD, Optimiser
from veilgraph.train.private.clip import NOWHERE
from veilgraph.train.private.plan import PrivatePlan, PrivateStep

PRECISION = 0.02  # of the noise, which the number of steps follows from
MOST = 3000
HIDDEN = 0.1  # of the variance of the noise: what other canaries may add to it
CROWD = 300  # canaries that are compared with each other
OF_ENTITIES, OF_RELATIONS = (0.01, 0.1, 1.0, 10.0), (0.01, 1.0, 30.0, 1000.0)  # sizes of rows that are tried
TRIED = 24  # canaries, for each
PLACE = PrivateStep(0)


class Recorder(Optimiser):
    """Keeps what a mechanism would move a table by, and moves nothing."""

    def __init__(self) -> None:
        self.rows: Tensor | None = None
        self.moved: Tensor | None = None

    start = SGD.start
    run = SGD.run

    def update(self, table: Tensor, rows: Tensor | None, gradient: Tensor, rate: float) -> None:
        self.rows, self.moved = rows, gradient

    def take(self) -> tuple[Tensor | None, Tensor | None]:
        """What was kept, once."""
        found = self.rows, self.moved
        self.rows = self.moved = None
        return found


@dataclass
class Coins:
    """A sampler that keeps each canary by a fresh coin in each step, and remembers who was drawn and who was in."""

    real: PoissonSampler
    canary_of: np.ndarray  # for each statement the canary it is of, or -1
    count: int
    chance: float = 0.5
    alone: bool = (
        False  # nothing but canaries: a promise holds for every graph, and there it is easiest to see
    )
    drawn: np.ndarray | None = None
    included: np.ndarray | None = None

    def draw(self, coins: np.random.Generator) -> Drawn:
        """A batch of a graph from which coins took canaries."""
        found = self.real.draw(coins)
        canary = self.canary_of[found.chosen]
        drawn = np.zeros(self.count, bool)
        drawn[canary[canary >= 0]] = True
        self.drawn, self.included = drawn, drawn & (np.random.default_rng().random(self.count) < self.chance)
        kept = np.r_[self.included, not self.alone][canary]
        owner = np.unique(found.owner[kept], return_inverse=True)[1]
        return Drawn(found.chosen[kept], owner, found.token)


@dataclass(frozen=True)
class Measured:
    """What steps were found to be: μ of one step at least, and the rate at least; ``expected`` is what they are charged for."""

    mu: float
    most: float
    rate: float
    expected_mu: float
    expected_rate: float
    steps: int
    reach: float  # the share of a clip norm that lies where the canaries are looked for


class Stage:
    """The canaries' clipped gradients on chosen tables."""

    def __init__(self, plan: PrivatePlan, p: Parameters, statements: np.ndarray, table: str) -> None:
        self.plan, self.wrong, self.table = plan, plan.confidential.negatives(PLACE.number), table
        relations = len(p.relations) // 2 if plan.objective.reciprocal else len(p.relations)
        both = statements[:, :, 1:2].astype(np.int64)
        if self.table == "entities":
            ids = np.concatenate([statements[:, :1, 0], statements[:, :, 2]], 1).astype(np.int64)
        else:
            ids = np.concatenate(
                [both, both + relations] if plan.objective.reciprocal else [both], 2
            ).reshape(len(statements), -1)
        asked = np.isin(statements[:, :, [0, 2]], self.wrong.numpy()).reshape(len(statements), -1).any(1)
        alone = table == "relations"  # (a row that is a wrong answer is pulled at by everybody)
        self.usable: np.ndarray = np.asarray(~asked | alone)
        self.ids, self.statements = (
            torch.from_numpy(_first_only(ids)),
            torch.from_numpy(statements.astype(np.int64)),
        )
        self.p, self.own = p, torch.empty(0)
        chosen = np.flatnonzero(self.usable)[:TRIED]
        best = -1.0
        for scales in itertools.product(OF_ENTITIES, OF_RELATIONS):
            drawing = torch.Generator().manual_seed(0)
            tables = [
                torch.randn(t.shape, generator=drawing) * s for t, s in zip((p.entities, p.relations), scales)
            ]
            tried = self._own(_with(p, *tables), chosen)
            reach = float(tried.flatten(1).norm(dim=1).mean()) * (1 - math.sqrt(self._met(tried, chosen)))
            if math.isfinite(reach) and reach > best * 1.02:
                best, self.p = reach, _with(p, *tables)
        self.own = self._own(self.p, np.arange(len(statements)))
        self.length = self.own.flatten(1).norm(dim=1).double()
        self.base: Tensor | None = None

    def chance(self, noise: float) -> float:
        """How many canaries may be in at once: together they must not hide each other where rows are everybody's."""
        some = np.arange(min(len(self.own), CROWD))
        met = self._met(self.own[: len(some)], some) * float(self.length.mean()) ** 2
        return float(np.clip(HIDDEN * noise**2 / max(met * len(self.own), 1e-12), 0.02, 0.5))

    def _met(self, own: Tensor, canaries: np.ndarray) -> float:
        """The mean squared cosine between the gradients of two of these canaries; rows of their own have nothing in common."""
        if self.table == "entities" or len(own) < 2:
            return 0.0
        flat = torch.zeros(len(own), len(self.p.relations), own.shape[2], dtype=torch.float64)
        for row, ids, rows in zip(flat, self.ids[canaries], own):
            row.index_add_(0, ids[ids >= 0], rows[ids >= 0])
        flat = flat.flatten(1) / flat.flatten(1).norm(dim=1, keepdim=True).clamp_min(1e-12)
        return float((flat @ flat.T).fill_diagonal_(0).square().sum()) / (len(own) * (len(own) - 1))

    def _own(self, p: Parameters, canaries: np.ndarray) -> Tensor:
        """``[canaries, rows, width]``: a canary's clipped gradient on the rows it is looked for on."""
        per_unit, out = self.statements.shape[1], []
        at_once = (
            [canaries] if self.table == "entities" else [canaries[i : i + 1] for i in range(len(canaries))]
        )
        for part in at_once:  # rows of entities are a canary's own, those of relations are everybody's
            owner = torch.arange(len(part)).repeat_interleave(per_unit)
            found = self.plan.total(p, self.statements[part].view(-1, 3), owner, self.wrong, NOWHERE)
            rows = getattr(found, self.table)
            out.append(_at(rows.ids, rows.values, self.ids[part], len(getattr(p, self.table))))
        return torch.cat(out).double()

    def expect(self, chance: float) -> None:
        """Take what canaries that are in with this chance are expected to add to rows that are everybody's for known."""
        if self.table == "relations":
            self.base = torch.zeros(len(self.p.relations), self.own.shape[2], dtype=torch.float64)
            real = self.ids >= 0
            self.base.index_add_(
                0, self.ids[real], self.own[real] * (self.plan.confidential.sampler.rate * chance)
            )

    def score(self, ids: Tensor | None, noisy: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Along each canary's gradient, in units of the noise there should be; and which canaries' rows moved."""
        rows = noisy.double()
        if self.base is not None:
            rows = rows - (self.base if ids is None else self.base[ids])
        there = _at(ids, rows, self.ids, len(getattr(self.p, self.table)))
        along = (there * self.own).sum((1, 2)) / self.length.clamp_min(1e-12)
        moved = (_at(ids, noisy.double(), self.ids, len(getattr(self.p, self.table))) != 0).any(2).any(1)
        return along.numpy(), moved.numpy()


def measure_steps(
    plan: PrivatePlan, p: Parameters, statements: np.ndarray, error: float
) -> Iterator[tuple[int, int] | list[Measured]]:
    """Take steps until enough is known; yields how many of how many are done and, in the end, what was found.

    Canaries are looked for on their own rows and on the relations': what has no noise in one of them must not hide behind the other.

    Reads confidential data: as the steps do. Releases: nothing; for the curator. Steps draw on noise of their own, which nobody pays for
    because nobody is shown it.
    """
    tables = [
        name
        for name, moves in (("entities", plan.clip.entities), ("relations", plan.clip.relations))
        if moves
    ]
    best: Measured | None = None
    sampler = plan.confidential.sampler
    for table in tables:
        plan.confidential.sampler = sampler
        for found in _measured(plan, Stage(plan, p, statements, table), statements, error / len(tables)):
            if not isinstance(found, Measured):
                yield found
            elif best is None or found.mu > best.mu:
                best = found
    plan.confidential.sampler = sampler
    assert best is not None
    yield [best]


def _measured(
    plan: PrivatePlan, stage: Stage, statements: np.ndarray, error: float
) -> Iterator[tuple[int, int] | Measured]:
    """The same for the rows of one table."""
    usable = stage.usable & (stage.length.numpy() > 0)
    sigma, clip, expected = plan.terms.noise_multiplier, plan.clip.norm, plan.terms.expected
    chance = stage.chance(sigma * clip)
    stage.expect(chance)
    sampler = Coins(
        plan.confidential.sampler,
        _canary_of(plan, statements),
        len(statements),
        chance,
        alone=stage.table == "relations",
    )
    plan.confidential.sampler = sampler  # type: ignore[assignment]
    seen = max(1.0, 2 * usable.sum() * sampler.real.rate * sampler.chance)
    count = int(np.clip(6.25 * sigma**2 / PRECISION**2 / seen, FEWEST, MOST))
    plan.meter.paid(repeated(count, plan.promise.step()))
    trials = Trials({"sums": (0.5 / sigma, 1 + 1 / sigma), "rows": (0.5,)})
    recorders = {f"private.{own}": Recorder() for own in plan.rows.moved.values()}
    tables = {
        name: (getattr(stage.p, name), getattr(stage.p, name).clone()) for name in ("entities", "relations")
    }
    drawn = 0
    for number in range(count):
        plan.take(stage.p, recorders, PLACE, 1.0)  # type: ignore[arg-type]
        plan.mechanism.flush(plan.rows.tables(stage.p))
        rows, moved = recorders[f"private.{plan.rows.moved[stage.table]}"].take()
        for recorder in recorders.values():
            recorder.take()
        if moved is None:  # moved late, and by itself
            table, before = tables[stage.table]
            moved = before.double() - table.double()
            for table, before in tables.values():
                table.copy_(before)
        along, there = stage.score(rows, moved.double() * expected)
        assert sampler.drawn is not None
        assert sampler.included is not None
        drawn += int(sampler.drawn.sum())
        own = {"sums": along[usable] / (sigma * clip), "rows": there[usable].astype(float)}
        trials.add(own, sampler.included[usable])
        yield number + 1, count
    yield Measured(
        trials.lower_mu(error / 2),
        trials.most(error / 2),
        _least_rate(drawn, count * len(statements), error / 2),
        1 / sigma,
        sampler.real.rate,
        count,
        float((stage.length.numpy()[usable] / clip).mean()) if usable.any() else 0.0,
    )


def _least_rate(drawn: int, trials: int, error: float) -> float:
    from scipy.stats import beta

    return float(beta.ppf(error, drawn, trials - drawn + 1)) if drawn else 0.0


def _canary_of(plan: PrivatePlan, statements: np.ndarray) -> np.ndarray:
    """For each of the plan's statements the canary it is of, or -1: canaries' heads are nobody else's."""
    heads = statements[:, 0, 0]
    order = np.argsort(heads)
    place = np.minimum(np.searchsorted(heads[order], plan.confidential.statements[:, 0]), len(heads) - 1)
    return np.where(heads[order][place] == plan.confidential.statements[:, 0], order[place], -1)


def _first_only(ids: np.ndarray) -> np.ndarray:
    """Each row's repeated ids become -1."""
    out = ids.copy()
    for column in range(1, ids.shape[1]):
        out[(ids[:, :column] == ids[:, column : column + 1]).any(1), column] = -1
    return out


def _at(ids: Tensor | None, rows: Tensor, wanted: Tensor, size: int) -> Tensor:
    """The rows of a table that are wanted (-1, and those that are not there: zeros)."""
    place = torch.full((size + 1,), len(rows), dtype=torch.int64)
    place[torch.arange(size) if ids is None else ids] = torch.arange(len(rows))
    padded = torch.cat([rows, rows.new_zeros(1, rows.shape[1])])
    return padded[place[wanted]]


def _with(p: Parameters, entities: Tensor, relations: Tensor) -> Parameters:
    return Parameters(entities, relations, p.weights)
