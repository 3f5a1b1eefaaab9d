"""Noisy marginals: what a statement can change, what is drawn, and what they are good for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from tests import naive
from tests.conformance.test_models import ENTITIES, RELATIONS, batch, dense, make
from tests.conftest import random_graph
from tests.privacy import QUICK, private_run
from tests.privacy.meters import OpenMeter
from veilgraph import models
from veilgraph.account.epsilon import spent
from veilgraph.account.events import gaussian
from veilgraph.account.prices import Counting
from veilgraph.config import TrainConfig
from veilgraph.errors import UsageError
from veilgraph.load import Graph
from veilgraph.mark import mark, unrestricted
from veilgraph.models.parameters import Parameters
from veilgraph.models.prior import Prior
from veilgraph.noise.gauss import source
from veilgraph.noise.measure import GRID
from veilgraph.rank.metrics import summarise
from veilgraph.rank.popularity import popularity
from veilgraph.rank.ranking import Ranker
from veilgraph.rank.scoring import score_all
from veilgraph.release import counts as marginals
from veilgraph.release.count_roles import weights
from veilgraph.run.export import export
from veilgraph.run.run import Run
from veilgraph.run.verify import verify
from veilgraph.train import losses, train
from veilgraph.train.gradients import Objective, sampled
from veilgraph.train.priors import WRITTEN
from veilgraph.train.private.begin import promise_of


def counting_of(graph: Graph, units: float) -> Counting:
    return promise_of(graph, TrainConfig(), units).counting


def seen(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """The counts before noise, and the statements they are made of."""
    spied: list[np.ndarray] = []
    estimated, noisy = marginals._estimated, marginals._noisy
    monkeypatch.setattr(
        marginals, "_estimated", lambda secret, *rest: (spied.append(secret), estimated(secret, *rest))[1]
    )
    monkeypatch.setattr(
        marginals, "_noisy", lambda counts, *rest: (spied.append(counts), noisy(counts, *rest))[1]
    )
    marginals.release(
        graph, unrestricted(graph), counting_of(graph, 1e6), 1.0, OpenMeter(source(insecure_seed=0))
    )
    monkeypatch.undo()
    return spied[1], spied[0]


def test_counts_read_no_more_of_a_unit_than_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(entities=30, relations=3, statements=400)
    graph = graph.with_marks(mark(graph, everything=True, unit="head", per_unit=2))
    _, statements = seen(graph, monkeypatch)
    assert np.bincount(statements[:, 0]).max() == 2
    assert np.bincount(graph.train[:, 0]).max() > 2


@pytest.mark.parametrize("unit", ["statement", "head"])
def test_sensitivity_of_counts(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removing any one unit of m statements changes each of the three releases by at most m·√2, loops included."""
    graph = random_graph(statements=400, entities=30)
    loops = graph.train.copy()
    loops[:20, 2] = loops[:20, 0]
    graph = graph.with_splits({"train": np.unique(loops, axis=0)})
    marked = graph.with_marks(
        mark(graph, everything=True, unit=unit, per_unit=50 if unit == "head" else None)
    )
    whole, statements = seen(marked, monkeypatch)
    assert (statements[:, 0] == statements[:, 2]).sum() >= 15
    rng, possible = np.random.default_rng(0), np.arange(len(graph.relations))
    weight = weights(rng.exponential(20.0, whole.shape), np.ones(len(whole)))
    np.testing.assert_allclose(np.square(weight[: len(possible)]) + np.square(weight[len(possible) :]), 2)
    direction = rng.standard_normal((len(whole), 5))
    direction *= (weight / np.linalg.norm(direction, axis=1))[:, None]
    direction[len(possible) :] = direction[
        : len(possible)
    ]  # the worst case for loops: both point the same way
    direction *= (weight / np.linalg.norm(direction, axis=1))[:, None]
    for chosen in np.random.default_rng(1).permutation(len(marked.train))[:25]:
        gone = np.arange(len(marked.train)) == chosen
        if unit == "head":
            gone = marked.train[:, 0] == marked.train[chosen, 0]
        fewer = marked.with_splits({**marked.splits, "train": marked.train[~gone]})
        assert gone.sum() <= marked.marks.per_unit
        less, others = seen(fewer, monkeypatch)
        most = np.sqrt(2) * gone.sum() + 1e-9
        assert np.linalg.norm(whole - less) <= most
        assert np.linalg.norm(weight[:, None] * (whole - less)) <= most
        sums = [
            marginals._role_sums(counts, of, direction, possible)
            for counts, of in ((whole, statements), (less, others))
        ]
        assert np.linalg.norm(sums[0] - sums[1]) <= most


def test_three_releases_cost_as_much_as_one() -> None:
    """Whatever the division, ε is that of one Gaussian, and what is charged is what is drawn."""
    for size, parts in ((1e6, 3), (10.0, 1)):
        counting = Counting(size, 1, 1000, 20)
        events = counting.events(2.0)
        assert len(events) == parts
        assert sum(counting.shares(2.0)) == pytest.approx(1)
        assert spent(events, 1e-6).epsilon == pytest.approx(spent([gaussian(2.0)], 1e-6).epsilon, rel=2e-3)


class Constant:
    """Noise that is the same number everywhere: what a release adds can be read off."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def normal(self, *shape: int) -> np.ndarray:
        return np.full(shape, self.values.pop(0))

    def coins(self) -> np.random.Generator:
        return np.random.default_rng(0)


def constant(counting: Counting, multiplier: float, values: list[float]) -> marginals._Releases:
    """Releases with such noise, in this order."""
    return marginals._Releases(counting, multiplier, OpenMeter(Constant(values)))  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["statement", "head"])
def test_noise_of_every_release_is_as_charged(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real weights and directions of a subset of relations: no statement changes a release by more than √2, and
    the noise added is m·√2 times the multiplier that is charged."""
    graph = random_graph(entities=60, relations=8, statements=4000)
    loops = graph.train.copy()
    loops[:100, 2] = loops[:100, 0]
    graph = graph.with_splits({"train": np.unique(loops, axis=0)})
    names = [graph.relations[i] for i in (1, 2, 5, 7)]
    marked = graph.with_marks(mark(graph, relations=names, unit=unit, per_unit=3 if unit == "head" else None))
    counting = counting_of(marked, 1e7)
    multiplier = 0.5
    charged = [event["noise_multiplier"] for event in counting.events(multiplier)]
    assert len(charged) == 3
    once = np.sqrt(2) * counting.per_unit

    spied: dict[str, list[np.ndarray]] = {"sums": [], "directions": [], "clipped": []}
    real_sums, real_estimate = marginals._role_sums, marginals.Roles.estimate

    def role_sums(
        counts: np.ndarray, secret: np.ndarray, direction: np.ndarray, possible: np.ndarray
    ) -> np.ndarray:
        spied["directions"].append(direction)
        spied["sums"].append(real_sums(counts, secret, direction, possible))
        for statement in secret[:: max(1, len(secret) // 60)]:  # one statement by itself, loops among them
            alone = np.zeros_like(counts)
            place = np.searchsorted(possible, statement[1])
            alone[place, statement[2]] += 1
            alone[len(possible) + place, statement[0]] += 1
            assert np.linalg.norm(real_sums(alone, statement[None], direction, possible)) <= np.sqrt(2) + 1e-9
        return spied["sums"][-1].copy()

    monkeypatch.setattr(marginals, "_role_sums", role_sums)

    def estimate(self: object, operator: np.ndarray, more: np.ndarray) -> np.ndarray:
        spied["clipped"].append(more)
        return real_estimate(self, operator, more)  # type: ignore[arg-type]

    monkeypatch.setattr(marginals.Roles, "estimate", estimate)
    monkeypatch.setattr(marginals, "ROLE_CAP", 1e9)
    table = np.zeros((8, 60))
    noisy, _ = marginals._noisy(table, constant(counting, multiplier, [1.0, 0.0]))
    again, deviation = marginals._noisy(table, constant(counting, multiplier, [0.0, 1.0]))
    first, second = once * charged[0], once * charged[1]
    weight = weights(first * np.ones_like(table), np.full(8, first))
    own = 1 / (
        1 / first**2 + (weight / second) ** 2
    )  # the variance of both together, where this weight was used
    np.testing.assert_allclose(noisy, (own / first)[:, None] * np.ones_like(table), rtol=3 * GRID)
    np.testing.assert_allclose(
        weights(table, np.full(8, first)), 1
    )  # nothing is known: both sides weigh the same
    np.testing.assert_allclose(deviation, 1 / np.sqrt(1 / first**2 + 1 / second**2))
    np.testing.assert_allclose(again, (deviation**2 / second)[:, None] * np.ones_like(table), rtol=3 * GRID)
    meter = constant(counting, multiplier, [0.0, 0.0, 1.0]).meter
    marginals.release(marked, unrestricted(marked), counting, multiplier, meter)
    sums, direction, more = (spied[key][0] for key in ("sums", "directions", "clipped"))
    rows = np.concatenate([np.array([1, 2, 5, 7]), 8 + np.array([1, 2, 5, 7])])
    known = np.zeros((16, 60))
    marginals._count(known.reshape(-1), unrestricted(marked).train, 8, 60)
    expected = (sums + once * charged[2] + direction.T @ known[rows]) / (once * charged[2])
    np.testing.assert_allclose(more, expected, rtol=1e-9, atol=GRID)  # (rounded to the grid)


def test_statements_no_public_rule_allows_are_not_counted() -> None:
    """Marked by themselves although no rule names their relation: they must not betray themselves by a crash."""
    graph = random_graph(entities=40, relations=6, statements=900)
    marked = graph.with_marks(mark(graph, relations=["r1"]))
    strange = np.array([[3, 5, 3]], np.int32)
    wider = marked.with_splits({**marked.splits, "train": np.concatenate([marked.train, strange])})
    prior = marginals.release(
        wider, unrestricted(wider), counting_of(wider, 1e7), 0.5, OpenMeter(source(insecure_seed=1))
    )
    assert prior.table is not None


def test_drawing_only_what_exceeds_equals_drawing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number and values of empty cells above the threshold (binomial and KS, p > 1e-6 by fixed seed)."""
    graph = random_graph(entities=300, relations=20, statements=50)
    marked = graph.with_marks(mark(graph, everything=True))
    monkeypatch.setattr("veilgraph.account.prices.WHOLE", 0)
    monkeypatch.setattr(marginals, "LARGE_CHANCE", 0.01)
    meter = OpenMeter(source(insecure_seed=0))
    values, number = [], []
    for _ in range(60):
        prior = marginals.release(marked, unrestricted(marked), counting_of(marked, 50), 4.0, meter)
        found = np.sinh(prior.values.numpy())
        values.append(found)
        number.append(len(found))
        assert (prior.starts.diff() >= 0).all()
    cells = 2 * 20 * 300
    assert stats.binomtest(sum(number), 60 * cells, 0.01).pvalue > 1e-6
    scale = counting_of(marked, 50).asked(4.0).deviation
    edge = stats.norm.isf(0.01)
    tail = np.concatenate(values) / scale
    assert tail.min() >= edge - 1e-3
    assert stats.kstest(tail, lambda x: 1 - stats.norm.sf(x) / 0.01).pvalue > 1e-6


@pytest.mark.parametrize("sparse", [False, True])
def test_prior_is_added_and_found_again(sparse: bool) -> None:
    table = torch.randn(2 * RELATIONS, ENTITIES, generator=torch.Generator().manual_seed(0)).relu()
    prior = Prior(RELATIONS, ENTITIES, table)
    if sparse:
        rows, ids = table.nonzero(as_tuple=True)
        starts = torch.searchsorted(rows, torch.arange(2 * RELATIONS + 1))
        prior = Prior(RELATIONS, ENTITIES, None, starts, ids, table[rows, ids])
    prior = Prior.of(prior.tensors())
    relation = torch.tensor([0, 3, RELATIONS + 1])
    for side, offset in (("tail", 0), ("head", RELATIONS)):
        scores = torch.ones(3, ENTITIES)
        prior.add(scores, relation, side)
        torch.testing.assert_close(scores, 1 + table[relation % RELATIONS + offset])
        ids = torch.tensor([[1, 5], [0, 7], [2, 2]])
        torch.testing.assert_close(prior.gather(relation, side, ids), (scores - 1).gather(1, ids))


def test_gradients_with_a_prior_equal_a_loop() -> None:
    model, p = make("distmult", 1)
    p.prior = Prior(RELATIONS, ENTITIES, torch.randn(2 * RELATIONS, ENTITIES))
    objective, given = Objective(losses.create("softmax", 1.0, 1.0, ENTITIES)), batch(8, 4, 5)
    found = sampled(model, p, given, objective)
    entities = p.entities.clone().requires_grad_()
    q = type(p)(entities, p.relations, {}, None)
    total = torch.zeros(())
    b, sides = len(given.triples), len(given.negatives)
    for i in range(2 * b):
        h, r, t = given.triples[i % b].tolist()
        side, source_, target = ("tail", h, t) if i < b else ("head", t, h)
        row = r + (RELATIONS if side == "head" else 0)
        positive = naive.one_sided(model, q, source_, r, target, side, False) + p.prior.table[row, target]
        wrong = [
            torch.tensor(-torch.inf) if n in (h, t)
            else naive.one_sided(model, q, source_, r, n, side, False) + p.prior.table[row, n]
            for n in given.negatives[i // (2 * b // sides)].tolist()
        ]  # fmt: skip
        total = total + naive.loss_of(objective, positive, torch.stack(wrong)) / b
    (expected,) = torch.autograd.grad(total, entities)
    torch.testing.assert_close(dense(found.entities, p.entities), expected, atol=1e-5, rtol=1e-4)


def test_marginals_alone_are_a_model(hospital: Graph, tmp_path: Path) -> None:
    """With much budget they are as good as popularity; the whole budget is charged once."""
    marked = hospital.with_marks(mark(hospital, everything=True))
    run = train(marked, out=tmp_path / "run", model="marginals", epsilon=50.0, threads=1)
    assert run.evaluate("test", graph=marked)["mrr"] == pytest.approx(
        popularity(hospital, "test")["mrr"], abs=0.03
    )
    charged = [line["what"] for line in run.ledger.lines]
    assert charged == ["noisy number of confidential units", "settings", "noisy marginals", WRITTEN]
    assert run.epsilon is not None
    assert 45 < run.epsilon <= 50
    assert verify(run, marked)["valid"]
    (run.folder / "marginals.safetensors").write_bytes(
        b"x" + (run.folder / "marginals.safetensors").read_bytes()[1:]
    )
    assert not verify(Run.open(run.folder), marked)["valid"]


def test_prior_and_steps_share_the_budget(hospital: Graph, tmp_path: Path) -> None:
    run = private_run(hospital, tmp_path / "run", prior="marginals")
    assert run.epsilon is not None
    assert 1.9 < run.epsilon <= 2.0
    events = run.ledger.events
    assert len([e for e in events if e["event"] in ("gaussian", "together")]) == 2
    assert sum(e["times"] for e in events if e["event"] == "repeated") == QUICK["private_steps"]
    with pytest.raises(UsageError, match="noisy counts"):
        export(run, tmp_path / "pykeen", format="pykeen")
    assert export(run, tmp_path / "parquet").is_dir()


@pytest.mark.parametrize(
    "asked", [{"private_learning_rate": 0.5}, {"shrinkage": "none"}, {"private_parameters": "all"}]
)
def test_asking_for_a_kind_of_step_is_asking_for_steps(
    asked: dict[str, object], hospital: Graph, tmp_path: Path
) -> None:
    """Not ignored in silence because counts alone are the default."""
    marked = hospital.with_marks(mark(hospital, everything=True))
    run = train(marked, out=tmp_path / "run", model="complex", dimension=8, epsilon=2.0, threads=1, **asked)
    assert run.config.private_steps


@pytest.mark.parametrize("model", ["complex", "transe", "rotate", "transh"])
def test_with_nothing_unrestricted_counts_decide(model: str, hospital: Graph, tmp_path: Path) -> None:
    """All of the budget goes to the counts and every score is theirs; steps are taken where they are asked for."""
    marked = hospital.with_marks(mark(hospital, everything=True))
    run = train(marked, out=tmp_path / "run", model=model, dimension=16, epsilon=2.0, threads=1)
    assert run.config.private_steps == 0
    assert [line["what"] for line in run.ledger.lines][-2:] == ["noisy marginals", WRITTEN]
    p = run.parameters
    first = torch.zeros(5, dtype=torch.int64)
    scores = score_all(
        run.model, p, torch.arange(5), first, side="tail", reciprocal=bool(run.config.reciprocal)
    )
    expected = p.prior.table[0].expand(5, -1)
    torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-5)
    assert bool(p.entities.any()) == run.model.silent_at_zero
    assert verify(run, marked)["valid"]
    asked = train(
        marked, out=tmp_path / "asked", model=model, dimension=16, epsilon=2.0, private_steps=2, threads=1
    )
    assert sum(e["times"] for e in asked.ledger.events if e["event"] == "repeated") == 2


def test_distances_leave_unknown_relations_to_counts(hospital: Graph, tmp_path: Path) -> None:
    """On them they are as good as counts alone; on all others as if confidential statements had been dropped."""
    marked = hospital.with_marks(mark(hospital, relations=["has*", "takes"]))
    settings = {"dimension": 16, "epochs": 4, "threads": 1, "seed": 0, "validate_every": 0}
    private = train(marked, out=tmp_path / "private", model="transe", epsilon=20.0, **settings)
    dropped = train(marked, out=tmp_path / "dropped", model="transe", drop_confidential=True, **settings)
    assert private.config.private_steps == 0
    found, without = (run.evaluate("test", graph=marked) for run in (private, dropped))
    assert found["unrestricted"]["mrr"] == pytest.approx(without["unrestricted"]["mrr"], abs=1e-9)
    counts = models.create("marginals", 1)
    tables = counts.initialise(len(marked.entities), len(marked.relations), np.random.default_rng(0))
    asked = marked.splits["test"][marked.secret("test")]
    ranks = Ranker(marked.triples, len(marked.relations)).rank(
        counts, Parameters(*tables, {}, private.prior), asked, reciprocal=False
    )
    alone = summarise(ranks.rank, ranks.candidates)["mrr"]
    assert found["confidential"]["mrr"] == pytest.approx(alone, abs=0.005)
    asked = train(marked, out=tmp_path / "asked", model="transe", epsilon=20.0, private_steps=3, **settings)
    assert sum(e["times"] for e in asked.ledger.events if e["event"] == "repeated") == 3


@pytest.mark.parametrize("marked_by", [{"random_share": 0.5}, {"relations": ["has*"]}])
def test_counts_of_a_mixed_graph_answer_for_every_relation(
    marked_by: dict[str, object], hospital: Graph, tmp_path: Path
) -> None:
    """Unrestricted statements are counted too: with much budget the counts are as good as popularity."""
    marked = hospital.with_marks(mark(hospital, **marked_by))
    run = train(marked, out=tmp_path / "run", model="marginals", epsilon=50.0, threads=1)
    assert run.evaluate("test", graph=marked)["mrr"] > 0.7 * popularity(hospital, "test")["mrr"]
