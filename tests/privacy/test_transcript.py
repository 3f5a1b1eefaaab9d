"""What is drawn is what is charged: every mechanism, unit and guarantee, held against a second set of rules.

The rules here are written anew from the mathematics, not taken from the code: a clip of C bounds a unit's sum by C, a unit of m
statements votes for 2·m entities and adds to 2·m counts, and so on. Rates and deviations are read off below the code that is tested.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import veilgraph
from tests.classify.clubs import SETTINGS
from tests.classify.conftest import town
from tests.conftest import random_graph
from tests.privacy.transcript import Transcript, transcribed
from veilgraph import registry
from veilgraph.account.events import Event
from veilgraph.account.ledger import Ledger
from veilgraph.classify import classify
from veilgraph.config import TrainConfig
from veilgraph.load import Graph
from veilgraph.mark import mark
from veilgraph.noise import integers, measure
from veilgraph.run.run import Run
from veilgraph.train import train
from veilgraph.train.mechanisms import mechanism_class
from veilgraph.tune.trials import tune_privately

__all__ = ["town"]
CLIP, RATE, SIGMA, CAP = 0.7, 0.4, 1.3, 3
UNITS = {"statement": 1, "head": CAP}
STEP: dict[str, Any] = {
    "model": "distmult",
    "dimension": 8,
    "noise_multiplier": SIGMA,
    "clip": CLIP,
    "sample_rate": RATE,
    "private_steps": 1,
    "private_optimiser": "sgd",
    "private_learning_rate": 1.0,
    "prior": "none",
    "epochs": 1,
    "negatives": 4,
    "threads": 1,
    "seed": 0,
}


def marked(unit: str, entities: int = 600) -> Graph:
    graph = random_graph(entities=entities, relations=3, statements=900)
    spoken = {name: rows[rows[:, 1] != 2] for name, rows in graph.splits.items()}
    graph = graph.with_splits(spoken)  # a relation nobody speaks of gets noise like any other
    cap = UNITS[unit] if unit == "head" else None
    return graph.with_marks(mark(graph, everything=True, unit=unit, per_unit=cap))


def both(graph: Graph, folder: Path, **settings: Any) -> tuple[Run, Transcript, dict[str, torch.Tensor]]:
    """A training with noise of one deviation everywhere, what it drew, and what that noise did to the tables."""
    runs = []
    for constant in (0.0, 1.0):
        with transcribed(constant) as seen:
            runs.append(train(graph, out=folder / str(constant), **settings))
    silent, noisy = (run.parameters for run in runs)
    moved = {
        "entities": noisy.entities - silent.entities,
        "relations": noisy.relations - silent.relations,
    }
    return runs[1], seen, moved


def steps_of(run: Run) -> list[Event]:
    """What each private step was charged."""
    return [
        part["of"]
        for part in run.ledger.events
        if part["event"] == "repeated"
        for _ in range(int(part["times"]))
    ]


def sampled_gaussian(rate: float, sigma: float) -> Event:
    return {
        "event": "sampled",
        "rate": pytest.approx(rate),
        "of": {"event": "gaussian", "noise_multiplier": pytest.approx(sigma)},
    }


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "name", [n for n in registry.names("mechanisms") if mechanism_class(n).guarantee == "dp"]
)
def test_steps_draw_what_they_are_charged(name: str, unit: str, tmp_path: Path) -> None:
    """Rate by the coins, σ by what reaches the tables, both against the ledger; nothing divides by what was drawn."""
    run, seen, moved = both(marked(unit), tmp_path, mechanism=name, **STEP)
    assert seen.most <= UNITS[unit]
    expected = RATE * float(run.facts["units"])  # public: a noisy number
    assert abs(seen.drawn[0] - expected) > 2  # else a step divided by it would look like a sound one
    charged = steps_of(run)
    assert len(charged) == STEP["private_steps"]
    assert len(seen.rates) >= 1
    on_relations = np.abs(moved["relations"].double().numpy()) * expected
    assert np.ptp(on_relations) <= 1e-4 * on_relations.max()  # every coordinate, and the same
    sigma = float(on_relations.mean()) / CLIP  # of sums that one unit changes by at most the clip
    if name in ("dense", "lazy"):
        on_entities = np.abs(moved["entities"].double().numpy()) * expected / CLIP
        np.testing.assert_allclose(on_entities, sigma, rtol=1e-3)
        assert charged[0] == sampled_gaussian(seen.rates[0], sigma)
    elif name == "adafest":
        (votes,) = seen.of(1)
        joined = 1 / math.sqrt(sigma**-2 + (votes / math.sqrt(2 * UNITS[unit])) ** -2)
        assert charged[0] == sampled_gaussian(seen.rates[0], joined)
    elif name == "select":
        eta = 3 * CLIP / seen.gumbels[0]  # the range of what one unit adds to the gaps, over the scale
        test = seen.singles[-1] / (2 * CLIP)  # a gap changes by 2·C
        joined = (sigma**-2 + test**-2 + of_private(eta) ** 2) ** -0.5
        step, failure = charged[0]["all"]
        assert step == sampled_gaussian(seen.rates[0], joined)
        assert failure["event"] == "failure"
    else:
        pytest.fail(f"say here, from the mathematics, what a step of mechanism {name} draws and costs")


def of_private(eta: float) -> float:
    """The least μ whose Gaussian is as telling as randomised response that is η-private, by its errors: one pair of them is equal."""
    error = 1 / (1 + math.exp(eta))
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / 2 / math.sqrt(2)) / 2 > error else (low, middle)
    return high


@pytest.mark.parametrize("eta", [0.01, 0.2, 1.0, 5.0])
def test_a_gaussian_is_as_telling_as_a_private_choice(eta: float) -> None:
    """At no false-positive rate does the most powerful test of an η-private release beat that of the Gaussian that is charged."""
    from scipy.stats import norm

    from veilgraph.train.mechanisms.select import as_gaussian

    mu, false = as_gaussian(eta), np.linspace(1e-9, 1 - 1e-9, 20001)
    assert mu == pytest.approx(of_private(eta))
    gaussian = norm.cdf(norm.isf(false) - mu)
    private = np.maximum(1 - math.exp(eta) * false, math.exp(-eta) * (1 - false))
    assert (gaussian <= private + 1e-12).all()
    assert (norm.cdf(norm.isf(false) - 0.99 * mu) > private).any()  # and no smaller one would do


def test_a_step_reads_all_that_was_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is cut to some size makes a unit's chance depend on how many others there are."""
    from veilgraph.noise.sample import Drawn, PoissonSampler
    from veilgraph.train.mechanisms.dense import Dense

    drawn, read = [], []
    draw, release = PoissonSampler.draw, Dense.release

    def drawing(self: PoissonSampler, coins: np.random.Generator) -> Drawn:
        found = draw(self, coins)
        drawn.append(len(np.unique(found.owner)))
        return found

    def releasing(self: Dense, p: Any, optimisers: Any, step: Any) -> None:
        read.append(len(step.total.norms))
        release(self, p, optimisers, step)

    monkeypatch.setattr(PoissonSampler, "draw", drawing)
    monkeypatch.setattr(Dense, "release", releasing)
    graph = marked("statement")
    train(graph, out=tmp_path / "run", **{**STEP, "private_steps": 20, "mechanism": "dense"})
    assert read == drawn
    assert (
        max(drawn) > RATE * len(np.unique(graph.keys(graph.train))) > min(drawn)
    )  # more and fewer than are expected


def test_select_lets_no_gap_pass_that_two_neighbours_could_make() -> None:
    """Row norms change by up to C each, one up and one down: without noise a gap of just under 2·C beyond the slack stays."""
    from tests.privacy.meters import OpenMeter, whole
    from veilgraph.account.prices import Asked, StepTerms
    from veilgraph.train.private.clip import Clip

    class Silent:
        def normal(self, *shape: int) -> np.ndarray:
            return np.zeros(shape)

        def coins(self) -> Any:
            return self

        def gumbel(self, centre: float, scale: float, size: int) -> np.ndarray:
            return np.zeros(size)

    meter = OpenMeter(Silent())  # type: ignore[arg-type]
    select = mechanism_class("select")(StepTerms(SIGMA, RATE, 2.0, 1, 10), Clip(CLIP), meter)
    test = meter.measure(*select.choosing(Asked(CLIP, SIGMA)), token=whole())[0]  # type: ignore[attr-defined]
    slack = 8 * SIGMA * CLIP * math.sqrt(2 * math.log(1e12))
    for gap, passes in ((slack + 1.9 * CLIP, False), (slack + 2.1 * CLIP, True)):
        norms = torch.tensor([gap] * 2 + [0.0] * 8, dtype=torch.float64)
        assert (select.top(norms, test) is not None) == passes  # type: ignore[attr-defined]


@pytest.mark.parametrize("unit", UNITS)
def test_whole_counts_draw_what_they_are_charged(
    unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit of m statements moves 2·m counts by one each (or one of them by m): ε / 2m for each, and nothing has a δ."""
    drawn: list[float] = []
    real = integers.two_sided

    def two_sided(count: int, epsilon: float, coins: np.random.Generator) -> np.ndarray:
        drawn.append(epsilon)
        return real(count, epsilon, coins)

    monkeypatch.setattr(measure, "two_sided", two_sided)
    run = train(marked(unit, entities=40), out=tmp_path / "run", model="marginals", epsilon=2.0, threads=1)
    number, counts = drawn
    charged = [event for event in run.ledger.events if event["event"] != "nothing"]
    assert charged[0] == {"event": "pure", "epsilon": pytest.approx(number)}
    assert charged[1] == {
        "event": "together",
        "all": [{"event": "pure", "epsilon": pytest.approx(counts * 2 * UNITS[unit])}],
    }
    assert sum((number, counts * 2 * UNITS[unit])) <= 2.0
    assert len(charged) == 2


def test_answers_that_were_not_paid_for_are_not_given(tmp_path: Path) -> None:
    from veilgraph.account.events import pure, repeated
    from veilgraph.account.prices import Answers, Tallies
    from veilgraph.errors import PrivacyError
    from veilgraph.noise.gauss import source
    from veilgraph.noise.measure import Meter

    meter, cells = Meter(Ledger(tmp_path / "ledger.jsonl"), source()), np.array([3, 5])
    meter.pay(repeated(2, pure(0.5)), "answers about units of two")
    for asked in (Answers(10, 2, 0.6), Answers(10, 3, 0.5), Answers(10, 1, 0.25)):
        with pytest.raises(PrivacyError, match="does not pay"):
            Meter(meter.ledger, source()).answers(cells, asked)
    meter.answers(cells, Answers(10, 2, 0.5))
    with pytest.raises(PrivacyError, match="does not pay"):
        meter.answers(cells, Answers(10, 2, 0.5))
    with pytest.raises(PrivacyError, match="does not pay"):
        meter.counts(np.zeros(3, np.int64), Tallies(2, 1.0))


@pytest.mark.parametrize("unit", UNITS)
def test_counts_draw_what_they_are_charged(unit: str, tmp_path: Path) -> None:
    """A unit of m statements adds to 2·m cells, at worst m to one: √2·m, in each release."""
    graph = marked(unit, entities=40)
    with transcribed(1.0) as seen:
        run = train(graph, out=tmp_path / "run", model="marginals", epsilon=20.0, threads=1)
    (charged,) = [event for event in run.ledger.events if event["event"] == "together"]
    sigmas = [scale / (math.sqrt(2) * UNITS[unit]) for scale in seen.of(2)]
    assert len(sigmas) == 3
    assert sigmas == pytest.approx([part["noise_multiplier"] for part in charged["all"]])
    assert run.ledger.events[0] == {"event": "gaussian", "noise_multiplier": seen.singles[0]}


def test_large_tables_draw_what_they_are_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilgraph.account.prices.WHOLE", 0)
    with transcribed(1.0) as seen:
        run = train(marked("head"), out=tmp_path / "run", model="marginals", epsilon=3.0, threads=1)
    (charged,) = [event for event in run.ledger.events if event["event"] == "together"]
    (sigma,) = {scale / (math.sqrt(2) * CAP) for scale in seen.of(1)}
    assert [sigma] == pytest.approx([part["noise_multiplier"] for part in charged["all"]])


def test_a_clip_quantile_draws_what_it_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilgraph.account.prices.ASKED", 100)
    with transcribed(1.0) as seen:
        settings = {**STEP, "clip": None, "clip_quantile": 0.5, "mechanism": "dense"}
        run = train(marked("head"), out=tmp_path / "run", **settings)
    charged = [event for event in run.ledger.events if event["event"] == "sampled"]
    assert charged == [sampled_gaussian(seen.rates[0], seen.of(1)[0])]  # a unit is in one bin
    assert steps_of(run) == [sampled_gaussian(seen.rates[1], SIGMA)]
    assert seen.of(2)[0] == pytest.approx(SIGMA * float(run.clip_norm or 0))


@pytest.mark.parametrize("unit", UNITS)
def test_a_study_draws_what_it_is_charged(unit: str, tmp_path: Path) -> None:
    """A unit's m statements add at most 1 each to the sum of reciprocal ranks."""
    base = TrainConfig.of(
        {"model": "marginals", "epsilon": 5.0, "threads": 1, "private_steps": 2, **_small()}
    )
    with transcribed(1.0) as seen:
        tune_privately(marked(unit), base, tmp_path / "study", 1.0)
    events = Ledger(tmp_path / "study" / "ledger.jsonl").events
    chosen = next(event for event in events if event["event"] == "selected")
    paid = [part["noise_multiplier"] for part in chosen["of"]["all"] if part["event"] == "gaussian"]
    score = next(sigma for sigma in paid if sigma != 100.0)
    assert seen.singles[-1] / UNITS[unit] == pytest.approx(score)


def _small() -> dict[str, Any]:
    return {
        "model": "distmult",
        "dimension": 8,
        "sample_rate": RATE,
        "negatives": 4,
        "epochs": 1,
        "prior": "none",
    }


@pytest.mark.parametrize("into", ["heads", "both", "heads,tails"])
def test_sums_of_messages_draw_what_they_are_charged(into: str, town: Path, tmp_path: Path) -> None:
    """A message has norm one at most; a statement sends one, or one both ways."""
    with transcribed(1.0) as seen:
        classify(town, guarantee="edge", epsilon=3.0, into=into, hops=2, out=tmp_path / "out", **SETTINGS)
    (charged,) = [e for e in Ledger(tmp_path / "out" / "ledger.jsonl").events if e["event"] == "repeated"]
    ways = into.split(",")
    moved = [math.sqrt(2) if way == "both" else 1.0 for way in ways]
    assert charged["times"] == len(seen.of(2))
    for number, scale in enumerate(seen.of(2)):
        one = moved[number % len(moved)]
        assert scale / one == pytest.approx(charged["of"]["noise_multiplier"])


@pytest.mark.parametrize("name", ["label", "node"])
def test_steps_on_labels_draw_what_they_are_charged(name: str, town: Path, tmp_path: Path) -> None:
    given = {"steps": 4, "sample_rate": 0.3, "clip": 0.6}
    with transcribed(1.0) as seen:
        classify(town, guarantee=name, epsilon=3.0, out=tmp_path / "out", **given, **SETTINGS)
    events = Ledger(tmp_path / "out" / "ledger.jsonl").events
    (charged,) = [e for e in events if e["event"] == "repeated"]
    assert charged["times"] == 4 == len(seen.rates)
    sigmas = {scale / 0.6 for scale in seen.of(2)}
    assert charged["of"] == sampled_gaussian(max(seen.rates), min(sigmas))
    assert {"event": "gaussian", "noise_multiplier": seen.singles[0]} in events


def test_noise_is_drawn_in_one_place() -> None:
    """Who draws by himself could forget to pay: only ``measure`` may ask a source of noise for numbers."""
    source = Path(veilgraph.__file__).parent.parent
    allowed = {
        "veilgraph/noise/gauss.py",
        "veilgraph/noise/measure.py",
        "veilgraph/recommend/baselines.py",  # (starting points of factors, no noise)
        "veilgraph_experiments/descriptions.py",  # as published, without a guarantee
        "veilgraph_experiments/raw_counts.py",  # a yardstick that is never released
    }
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if ".normal(" in path.read_text("utf-8")
    }
    assert found == allowed


def test_what_was_not_paid_for_is_not_drawn(tmp_path: Path) -> None:
    from veilgraph.account.events import gaussian, repeated, sampled
    from veilgraph.account.prices import Asked
    from veilgraph.errors import PrivacyError
    from veilgraph.noise.gauss import source
    from veilgraph.noise.measure import Meter
    from veilgraph.noise.sample import Token

    meter = Meter(Ledger(tmp_path / "ledger.jsonl"), source())
    meter.pay(repeated(2, sampled(0.5, gaussian(2.0))), "two steps")
    meter.measure(Asked(0.7, 2.0), token=Token(0.5))
    for asked, token in (
        (Asked(0.7, 1.0), Token(0.5)),  # less noise than was paid for
        (Asked(0.7, 2.0), Token(1.0)),  # more of the units
        (Asked(0.7, 2.0), None),
    ):
        with pytest.raises(PrivacyError, match="does not pay"):
            meter.measure(asked, token=token)
    token = Token(0.5)
    meter.measure(Asked(0.7, 2.0), token=token)
    with pytest.raises(PrivacyError, match="released twice"):
        meter.measure(Asked(0.7, 2.0), token=token)
    with pytest.raises(PrivacyError, match="does not pay"):
        meter.measure(Asked(0.7, 2.0), token=Token(0.5))  # a third one
    assert json.loads((tmp_path / "ledger.jsonl").read_text())["charge"]["times"] == 2


def test_what_is_released_once_is_on_a_public_grid(tmp_path: Path) -> None:
    """The last bits of a double tell which whole number the noise was added to; a grid has none."""
    from veilgraph.account.prices import Asked
    from veilgraph.noise.gauss import source
    from veilgraph.noise.measure import GRID, Meter

    for asked in (Asked(1.0, 100.0), Asked(math.sqrt(2) * 3, 0.37)):
        meter = Meter(Ledger(tmp_path / f"{asked.multiplier}.jsonl"), source())
        found = meter.release(np.arange(500), asked, "counts")
        step = 2.0 ** math.floor(math.log2(asked.deviation)) * GRID
        assert (found == np.rint(found / step) * step).all()
        assert len(np.unique(found)) > 100
        error = (found - np.arange(500)).std()
        assert error == pytest.approx(asked.deviation, rel=0.2)  # six of its own deviations
