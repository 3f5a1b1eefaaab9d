"""Every rule of the privacy contract that concerns one graph on one machine, one test each."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from tests.privacy import QUICK, private_run
from tests.privacy.meters import OpenMeter, whole
from veilgraph import models, registry
from veilgraph.account.prices import Asked, StepTerms
from veilgraph.config import TrainConfig
from veilgraph.errors import PrivacyError
from veilgraph.load import Graph
from veilgraph.mark import mark, unrestricted
from veilgraph.models.parameters import Parameters
from veilgraph.noise import gauss
from veilgraph.noise.sample import PoissonSampler, pieces
from veilgraph.run.verify import verify
from veilgraph.train import train
from veilgraph.train.gradients import RowGradient
from veilgraph.train.mechanisms import Step, mechanism_class
from veilgraph.train.mechanisms.base import shrink
from veilgraph.train.optim import create
from veilgraph.train.private.batches import TOGETHER
from veilgraph.train.private.clip import Clip, ClippedSum, Votes, merged


# --- 1. who is protected ------------------------------------------------------------------------------------------
def test_number_of_confidential_statements_is_not_public(hospital: Graph, tmp_path: Path) -> None:
    """No published file holds it: only the noisy count that was charged."""
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    run = private_run(graph, tmp_path / "run")
    exact = int(graph.secret("train").sum())
    for name in ("config.yaml", "certificate.json", "ledger.jsonl"):
        text = (run.folder / name).read_text(encoding="utf-8")
        for number in (exact, len(graph.train)):  # (hashes hold any four digits now and then)
            assert re.search(rf"(?<![\w.]){number}(\.0)?(?![\w.])", text) is None, name
    assert run.ledger.lines[0]["charge"] == {"event": "gaussian", "noise_multiplier": 100.0}


@pytest.mark.parametrize("model", ["marginals", "complex", "transe"])
def test_an_empty_confidential_graph_trains_like_any_other(
    model: str, hospital: Graph, tmp_path: Path
) -> None:
    """Refusing it would tell that there is nothing: it is a neighbour of a graph with one statement."""
    empty = hospital.with_splits({"train": hospital.train[:0], "test": hospital.split("test")})
    graph = empty.with_marks(mark(empty, everything=True))
    run = train(graph, out=tmp_path / "run", model=model, epsilon=1.0, threads=1)
    assert run.epsilon is not None
    assert run.epsilon <= 1
    assert verify(run, graph)["valid"]


def test_hash_of_confidential_data_is_not_published(hospital: Graph, tmp_path: Path) -> None:
    """Whoever guesses the graph could test the guess against a plain hash; the salted one differs at every run."""
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    runs = [private_run(graph, tmp_path / name) for name in ("one", "two")]
    found = {run.facts["commitment"] for run in runs}
    assert len(found) == 2
    assert graph.fingerprint not in found
    assert all(run.is_of(graph) for run in runs)
    assert not any(run.is_of(hospital.with_marks(mark(hospital, random_share=0.4))) for run in runs)


# --- 2. one private step ------------------------------------------------------------------------------------------
def test_sampling_is_by_independent_coins() -> None:
    """Sizes are Binomial, units equally likely and pairwise independent (chi-square, p > 1e-6 by fixed seed)."""
    unit_of = np.repeat(np.arange(40), 2)
    sampler, rng = PoissonSampler(unit_of, 0.3), np.random.default_rng(0)
    sizes, together, alone = [], 0, 0
    for _ in range(4000):
        chosen, owner, _ = sampler.draw(rng)
        units = np.unique(unit_of[chosen])
        assert len(chosen) == 2 * len(units), "a unit is in with all its statements"
        assert (np.diff(owner) >= 0).all()
        sizes.append(len(units))
        alone += 3 in units
        together += 3 in units and 17 in units
    observed = np.bincount(sizes, minlength=41)
    expected = 4000 * stats.binom.pmf(np.arange(41), 40, 0.3)
    keep = expected > 5
    assert (
        stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue
        > 1e-6
    )
    assert alone / 4000 == pytest.approx(0.3, abs=0.03)
    assert together / 4000 == pytest.approx(0.09, abs=0.02)


def test_empty_batches_still_get_noise() -> None:
    noise = gauss.source(insecure_seed=1, threads=1)
    for name in ("dense", "adafest"):
        p = Parameters(torch.zeros(30, 4), torch.zeros(6, 4))
        clip = Clip(1.0)
        mechanism = mechanism_class(name)(StepTerms(1.0, 0.1, 3.0, 1, 30), clip, OpenMeter(noise))
        empty = RowGradient(torch.empty(0, dtype=torch.int64), torch.empty(0, 4))
        votes = Votes(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64), 2**0.5)
        total = ClippedSum(empty, empty, 1.0, 0.0, torch.empty(0), votes)
        optimisers = {k: create("sgd", t) for k, t in (("entities", p.entities), ("relations", p.relations))}
        mechanism.release(p, optimisers, Step(total, torch.tensor([2, 5]), 1.0, whole()))
        assert (p.relations != 0).all()
        assert (p.entities[[2, 5]] != 0).all()


def released(statements: int, table: str, multiplier: float, expected: float = 4.0) -> torch.Tensor:
    """Where one dense step takes tables of zeros; so many units each give 0.5 on the first row."""
    p = Parameters(torch.zeros(20, 4), torch.zeros(5, 4))
    terms = StepTerms(multiplier, 0.1, expected, 1, 20)
    mechanism = mechanism_class("dense")(terms, Clip(1.0), OpenMeter(gauss.source(insecure_seed=7)))
    rows = RowGradient(torch.tensor([0]), torch.full((1, 4), 0.5 * statements))
    total = ClippedSum(rows, rows, 1.0, 0.0, torch.empty(0))
    optimisers = {k: create("sgd", t) for k, t in (("entities", p.entities), ("relations", p.relations))}
    mechanism.release(p, optimisers, Step(total, torch.empty(0, dtype=torch.int64), 1.0, whole()))
    return torch.as_tensor(getattr(p, table))


@pytest.mark.parametrize("table", ["entities", "relations"])
def test_noise_is_on_every_coordinate(table: str) -> None:
    """The same noise, whatever the batch: where the batch has no rows, what moves does not depend on it."""
    few, many = released(1, table, 1.0), released(8, table, 1.0)
    assert (few != 0).all()
    assert torch.equal(few[1:], many[1:])


def test_sums_are_divided_by_the_expected_size() -> None:
    """Eight units instead of one move a row eight times as far: nothing is divided by their number."""
    one, eight = released(1, "entities", 1e-12), released(8, "entities", 1e-12)
    torch.testing.assert_close(one[0], torch.full((4,), -0.5 / 4.0))
    torch.testing.assert_close(eight[0], 8 * one[0])


def test_pieces_never_cut_a_unit() -> None:
    owner = np.repeat(np.arange(30), np.arange(30) % 5 + 1)
    for most in (1, 3, 7, 1000):
        found = pieces(owner, most)
        assert sum(p.stop - p.start for p in found) == len(owner)
        edges = [p.stop for p in found[:-1]]
        assert all(owner[e - 1] != owner[e] for e in edges)
    assert pieces(np.empty(0, np.int64), 5) == []


def test_negatives_do_not_depend_on_statements(
    hospital: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from veilgraph.train import negatives

    drawn: list[np.ndarray] = []
    real = negatives.draw_two_sides

    def spy(*given: object) -> np.ndarray:
        drawn.append(real(*given))  # type: ignore[arg-type]
        return drawn[-1]

    monkeypatch.setattr(negatives, "draw_two_sides", spy)
    for seed in (1, 2):
        graph = unrestricted(hospital).with_marks(mark(hospital, random_share=0.5, seed=seed))
        private_run(graph, tmp_path / str(seed))
    half = len(drawn) // 2
    assert half == -(-QUICK["private_steps"] // TOGETHER)
    assert all((a == b).all() for a, b in zip(drawn[:half], drawn[half:]))


def test_noise_is_gaussian(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shape by Kolmogorov–Smirnov (p > 1e-6), tails by counting: of 2e7 numbers 136 lie beyond 4.5 σ on average."""
    for secure, count in ((False, 20_000_000), (True, 4_000_000)):
        noise = gauss.source(secure=secure)
        sample = noise.normal(400_000)
        assert sample.dtype == np.float64
        assert stats.kstest(sample, "norm").pvalue > 1e-6
        beyond = sum(int((np.abs(noise.normal(1_000_000)) > 4.5).sum()) for _ in range(count // 1_000_000))
        assert stats.poisson.cdf(beyond, count * 2 * stats.norm.sf(4.5)) > 1e-7
        assert stats.poisson.sf(beyond - 1, count * 2 * stats.norm.sf(4.5)) > 1e-7
    first, second = (gauss.source(threads=2).normal(2000).reshape(2, 1000) for _ in range(2))
    assert len(np.unique(np.concatenate([first, second]))) == 4000  # streams and runs have their own numbers
    assert 0.45 < (first > 0).mean() < 0.55
    # the smallest uniform there is gives the largest number: far beyond the 5.77 σ of Torch's float32
    monkeypatch.setattr(gauss.SecureNoise, "_bits", lambda self, count: np.zeros(count, np.uint64))
    assert gauss.SecureNoise().normal(2).max() > 8.5


@pytest.mark.parametrize("kind", ["fresh", "secure"])
def test_noise_is_never_drawn_twice(kind: str) -> None:
    """Two trainings have other noise and other batches, whatever their seeds: keys are fresh entropy."""
    first, second = (gauss.source(secure=kind == "secure") for _ in range(2))
    assert not np.isin(first.normal(1000), second.normal(1000)).any()
    assert not np.isin(first.coins().random(1000), second.coins().random(1000)).any()


@pytest.mark.slow
def test_noise_goes_beyond_what_float32_can() -> None:
    """Of 1.5e9 numbers 12 lie beyond 5.768 σ on average; none with probability 6e-6."""
    noise = gauss.source()
    assert any(np.abs(noise.normal(10_000_000)).max() > 5.768 for _ in range(150))


def test_optimiser_state_depends_on_noisy_gradients_only() -> None:
    """The same noise with different statements moves Adagrad's memory by the same rows: all of them."""
    states = []
    for row in (3, 9):
        p = Parameters(torch.zeros(12, 4), torch.zeros(3, 4))
        mechanism = mechanism_class("dense")(
            StepTerms(1.0, 1.0, 1.0, 1, 12), Clip(1.0, True, False), OpenMeter(gauss.source(insecure_seed=5))
        )
        optimisers = {"entities": create("adagrad", p.entities)}
        total = ClippedSum(
            RowGradient(torch.tensor([row]), torch.ones(1, 4) * 0.4), None, 1.0, 0.0, torch.empty(0)
        )
        mechanism.release(p, optimisers, Step(total, torch.empty(0, dtype=torch.int64), 0.1, whole()))
        states.append(optimisers["entities"].state["squares"])
    assert all((state > 0).all() for state in states)


def test_relations_no_rule_makes_confidential_get_no_noise(hospital: Graph, tmp_path: Path) -> None:
    """They are no private parameters: with no unrestricted statement after the start they stay where it left them."""
    names = list(hospital.relations)
    graph = hospital.with_marks(mark(hospital, relations=names[:3]))
    settings = {"mechanism": "dense", "private_optimiser": "sgd", "private_parameters": "relations"}
    settings["order"] = "unrestricted-first"
    plain = private_run(graph, tmp_path / "plain", private_steps=0, prior="none", **settings)
    noisy = private_run(graph, tmp_path / "noisy", prior="none", shrinkage="none", **settings)
    moved = (plain.parameters.relations != noisy.parameters.relations).any(1)
    possible = torch.arange(len(moved)) % len(names) < 3
    assert moved[possible].all()
    assert not moved[~possible].any()


def test_shrinkage_silences_rows_of_noise_and_keeps_signals() -> None:
    """Positive-part James–Stein has a smaller mean square error than the noisy rows, whatever the signal."""
    rng = np.random.default_rng(0)
    for strength in (0.0, 1.0, 10.0):
        truth = torch.from_numpy(strength * rng.standard_normal((400, 32)))
        rows = truth + 2.0 * torch.from_numpy(rng.standard_normal((400, 32)))
        before = float(((rows - truth) ** 2).sum())
        shrink(rows, 2.0)
        assert float(((rows - truth) ** 2).sum()) < before
    silent = torch.from_numpy(rng.standard_normal((400, 32)))
    shrink(silent, 1.0)
    assert float((silent == 0).all(1).double().mean()) > 0.3


def test_shrinkage_refuses_mechanisms_without_a_noisy_sum() -> None:
    with pytest.raises(PrivacyError, match="shrinkage none"):
        mechanism_class("lazy").refuse("sgd", shrink=True)


@pytest.mark.parametrize("given", [{"mechanism": "dense"}, {"delta": 1e-6}, {"secure_noise": True}])
def test_private_settings_without_epsilon_are_refused(
    hospital: Graph, tmp_path: Path, given: dict[str, object]
) -> None:
    """They would be ignored: the training would be an ordinary one that looks private."""
    with pytest.raises(PrivacyError, match="protects nobody"):
        train(hospital, out=tmp_path / "run", model="distmult", **given)
    assert not (tmp_path / "run").exists()


# --- 3. mechanisms ------------------------------------------------------------------------------------------------
def walk(name: str, seed: int, steps: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    """A few steps whose rows are read in a pattern; the tables after a flush."""
    p = Parameters(torch.zeros(40, 8), torch.zeros(6, 8))
    mechanism = mechanism_class(name)(
        StepTerms(1.5, 0.2, 4.0, 1, 40), Clip(0.7), OpenMeter(gauss.source(insecure_seed=seed))
    )
    optimisers = {k: create("sgd", t) for k, t in (("entities", p.entities), ("relations", p.relations))}
    for step in range(steps):
        read = torch.arange(step, 40, step + 2)
        relation, rate = torch.tensor([step % 6]), 0.1 * (step + 1)
        mechanism.catch_up(p, read, relation)
        into = mechanism.into(p, rate)
        entities = merged(into.entities, into.times, (read, 0.05 * torch.ones(len(read), 8), None))
        relations = merged(into.relations, into.times, (relation, torch.ones(1, 8), None))
        total = ClippedSum(entities, relations, 0.7, 0.0, torch.empty(0))
        mechanism.release(p, optimisers, Step(total, torch.empty(0, dtype=torch.int64), rate, whole()))
    mechanism.flush(p)
    return p.entities.clone(), p.relations.clone()


def test_lazy_and_flush_equal_dense_in_distribution() -> None:
    """Kolmogorov–Smirnov per table and row class, 300 walks each; fails by chance with probability below 1e-5."""
    found = {}
    for name, start in (("lazy", 0), ("dense", 10_000)):
        walks = [walk(name, start + seed) for seed in range(300)]
        found[name] = [torch.stack([w[i] for w in walks]).numpy() for i in (0, 1)]
    for table in (0, 1):
        lazy, dense = found["lazy"][table], found["dense"][table]
        for rows in (slice(0, 1), slice(1, 3), slice(3, None)):
            result = stats.ks_2samp(lazy[:, rows].ravel(), dense[:, rows].ravel())
            assert result.pvalue > 1e-6
        assert np.std(lazy) == pytest.approx(np.std(dense), rel=0.03)
        assert np.abs(np.corrcoef(lazy[:, 0, 0], lazy[:, 1, 0])[0, 1]) < 0.25


def test_lazy_refuses_what_needs_noise_at_once() -> None:
    with pytest.raises(PrivacyError, match="Use mechanism dense"):
        mechanism_class("lazy").refuse("adam")


def test_checkpoints_hold_all_their_noise(hospital: Graph, tmp_path: Path) -> None:
    """No row of a checkpoint is where the gradient alone would have left it: every private row has moved."""
    from veilgraph.files import read_tensors
    from veilgraph.train.loop import Progress

    class Stop(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.step >= 3:
            raise Stop

    with pytest.raises(Stop):
        private_run(
            hospital, tmp_path / "run", listener=stop, checkpoint_seconds=0, private_steps=50, epochs=1, sample_rate=0.002,
            mechanism="lazy",
        )  # fmt: skip
    state = read_tensors(tmp_path / "run" / "checkpoint.safetensors")[0]
    config = TrainConfig.of({"model": "distmult", **QUICK})
    model = models.create("distmult", config.dimension or 1)
    from veilgraph.rng import Streams

    start = model.initialise(len(hospital.entities), 2 * len(hospital.relations), Streams(0).numpy("init"))
    assert (state["now/entities"] != 0).all()
    assert (state["now/entities"] != start[0]).all()
    assert (state["now/relations"] != start[1][: len(state["now/relations"])]).all()


@pytest.mark.parametrize("name", registry.names("mechanisms"))
def test_every_mechanism_trains_and_says_what_it_promises(name: str, hospital: Graph, tmp_path: Path) -> None:
    run = private_run(hospital, tmp_path / "run", mechanism=name)
    promised = mechanism_class(name).guarantee
    assert run.guarantee == promised
    if promised == "dp":
        assert run.epsilon is not None
        assert run.epsilon <= 2.0
    else:
        assert run.epsilon is None
        assert "not differentially private" in run.certificate["statement"]
    assert verify(run, hospital.with_marks(mark(hospital, everything=True)))["valid"]


def test_adafest_by_skipping_equals_adafest_by_coins() -> None:
    """Rows without votes pass with the chance of a Gaussian above the threshold (binomial, p > 1e-6)."""
    terms = StepTerms(1.0, 0.1, 20.0, 1, 500)
    meter = OpenMeter(gauss.source(insecure_seed=0))
    mechanism = mechanism_class("adafest")(terms, Clip(1.0), meter)
    votes = Votes(torch.tensor([7, 8]), torch.tensor([10_000, 0]), 2**0.5)
    noise = meter.measure(Asked(votes.sensitivity, 4.0), token=whole())[0]
    counts = np.zeros(500)
    for _ in range(2000):
        counts[mechanism.chosen(votes, noise).numpy()] += 1
    assert counts[7] == 2000
    chance = 20 / 500
    rest = np.delete(counts, 7)
    assert stats.binomtest(int(rest.sum()), 2000 * 499, chance).pvalue > 1e-6
    assert stats.kstest((rest - 2000 * chance) / np.sqrt(2000 * chance * (1 - chance)), "norm").pvalue > 1e-6
