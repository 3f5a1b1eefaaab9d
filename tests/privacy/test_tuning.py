"""Tuning on confidential statements: what it costs, that it is paid once, and that nothing but the best is kept."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from tests.ledgers import rewrite
from tests.privacy import QUICK, private_run
from veilgraph.account import spent
from veilgraph.account.epsilon import ORDERS
from veilgraph.account.events import failure, gaussian, sampled, selected, together
from veilgraph.account.ledger import Ledger
from veilgraph.errors import DivergedError, InputError, PrivacyError, RunError, UsageError, VerificationError
from veilgraph.load import Graph
from veilgraph.mark import mark
from veilgraph.run.run import Run
from veilgraph.run.verify import verify
from veilgraph.tune import trials
from veilgraph.tune.search import tune

STUDY = {"model": "distmult", "epsilon": 2.0, **QUICK}


@pytest.fixture
def marked(hospital: Graph) -> Graph:
    return hospital.with_marks(mark(hospital, relations=["hasDiagnosis", "takes"]))


class Stop(BaseException):
    """As if the process had been killed."""


def test_selection_costs_what_the_theorem_says() -> None:
    """Papernot & Steinke, Theorem 2 with η = 0, by hand, for one Gaussian."""
    sigma, mean, delta = 8.0, 10.0, 1e-6
    gamma = 0.5
    for _ in range(10_000):  # (1/γ − 1) / log(1/γ) = mean, by a fixed point
        gamma = 1 / (1 + mean * math.log(1 / gamma))
    once = {order: order / (2 * sigma**2) for order in ORDERS}
    constant = min((1 - 1 / order) * once[order] + math.log(1 / gamma) / order for order in ORDERS)
    whole = {order: once[order] + constant + math.log(mean) / (order - 1) for order in ORDERS}
    by_hand = min(
        whole[o] + math.log1p(-1 / o) - math.log(delta * o) / (o - 1)
        for o in ORDERS
        if math.isfinite(whole[o])
    )
    found = spent([selected(mean, gaussian(sigma))], delta)
    assert found.epsilon == pytest.approx(by_hand, rel=1e-3)
    assert found.pld is None
    assert spent([selected(1, gaussian(sigma))], delta).epsilon == pytest.approx(
        spent([gaussian(sigma)], delta).rdp, rel=0.01
    )


def test_what_cannot_be_selected_from_is_refused() -> None:
    for event in (
        selected(5, together(gaussian(5), failure(1e-9))),
        selected(0.5, gaussian(5)),
        sampled(0.1, selected(5, gaussian(5))),
    ):
        with pytest.raises(VerificationError):
            spent([event], 1e-6)


def test_number_of_trials_is_logarithmic() -> None:
    """χ² over the first ten numbers and the rest; fails by chance once in a million."""
    rng, mean, draws = np.random.default_rng(0), 10.0, 20_000
    drawn = np.array([trials.draw_number(mean, rng) for _ in range(draws)])
    gamma = 0.5
    for _ in range(10_000):
        gamma = 1 / (1 + mean * math.log(1 / gamma))
    chance = np.array([(1 - gamma) ** k / (k * math.log(1 / gamma)) for k in range(1, 11)])
    chance = np.append(chance, 1 - chance.sum())
    counts = np.append(np.bincount(drawn[drawn <= 10], minlength=11)[1:], (drawn > 10).sum())
    assert stats.chisquare(counts, chance * draws).pvalue > 1e-6
    assert drawn.min() == 1
    assert trials.draw_number(1, rng) == 1


def test_a_score_reads_no_more_of_a_unit_than_its_cap(
    hospital: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = np.unique(hospital.triples, axis=0)
    graph = hospital.with_splits({"train": whole, "valid": whole, "test": whole[:0]})
    graph = graph.with_marks(mark(graph, relations=["hasDiagnosis", "takes"], unit="head", per_unit=2))
    secret = graph.split("valid")[graph.secret("valid")]
    assert np.bincount(secret[:, 0]).max() > 2
    read, rank = [], trials.Ranker.rank
    monkeypatch.setattr(
        trials.Ranker, "rank", lambda self, m, p, s, **more: (read.append(s), rank(self, m, p, s, **more))[1]
    )
    trials.reciprocal_ranks(private_run(graph, tmp_path / "run"), graph, np.random.default_rng(0))
    assert np.bincount(read[-1][:, 0]).max() == 2


@pytest.mark.parametrize("unit", ["statement", "head"])
def test_one_unit_changes_the_score_by_at_most_its_size(unit: str, hospital: Graph, tmp_path: Path) -> None:
    """Removing a unit from every split changes the sum by at most m: nobody else's rank depends on it."""
    marks = mark(
        hospital, relations=["hasDiagnosis", "takes"], unit=unit, per_unit=1 if unit == "statement" else 2
    )
    graph = hospital.with_marks(marks)
    run = private_run(graph, tmp_path / "run")
    secret = graph.split("valid")[graph.secret("valid")]
    assert len(secret) > 3

    def total(given: Graph) -> float:
        return trials.reciprocal_ranks(run, given, np.random.default_rng(0))

    whole = total(graph)
    assert whole > 0
    for statement in secret[:10]:
        less = {}
        for name, array in graph.splits.items():
            same = (array == statement).all(1) if unit == "statement" else array[:, 0] == statement[0]
            less[name] = array[~(same & graph.secret(name))]
        smaller = graph.with_splits(less)
        assert abs(whole - total(smaller)) <= graph.marks.per_unit + 1e-9
    only_train = graph.with_splits({**graph.splits, "train": graph.train[~graph.secret("train")]})
    assert total(only_train) == whole  # what is left out of ranks is public


def test_tuning_is_charged_once_and_certified(marked: Graph, tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    found = tune(marked, out=tmp_path / "study", trials=3, report=told.append, **STUDY)
    assert found["score"] >= 0
    assert "no estimate" in found["score_is"]
    run = Run.open(found["run"])
    assert run.epsilon is not None
    assert 1.8 < run.epsilon <= 2.0
    assert found["epsilon"] == run.epsilon
    assert verify(run, marked)["valid"]
    assert sum(event["event"] == "selected" for event in run.ledger.events) == 1
    assert found["score"] == max(0.0, *(trial["score"] for trial in told))
    assert found["settings"]["clip"] == run.config.clip
    assert not list((tmp_path / "study").glob("trial-*"))  # the others are forgotten
    assert all(line["epsilon"] == run.epsilon for line in run.trace)
    assert run.evaluate("test", graph=marked)["mrr"] > 0
    with pytest.raises(RunError, match="finished"):
        tune(marked, out=tmp_path / "study", trials=3, **STUDY)


def _parts(event: Any) -> list[Any]:
    return list(event["of"]["all"])


FORGERIES = {  # of [count, selected]
    "as if alone": lambda count, chosen: [count, *_parts(chosen)],
    "an empty selection beside": lambda count, chosen: [count, selected(3, gaussian(1e4)), *_parts(chosen)],
    "two selections": lambda count, chosen: [count, selected(3, gaussian(1e5)), selected(1, together(*_parts(chosen)))],
    "fewer trials": lambda count, chosen: [count, {**chosen, "mean": 1.0}],
    "no score": lambda count, chosen: [
        count, selected(3, together(*(p for p in _parts(chosen) if p["event"] != "gaussian" or p == count)))
    ],
    "no count": lambda count, chosen: [chosen],
}  # fmt: skip


@pytest.fixture(scope="module")
def tuned(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = hospital.with_marks(mark(hospital, relations=["hasDiagnosis", "takes"]))
    return Path(tune(graph, out=tmp_path_factory.mktemp("tuned") / "study", trials=3, **STUDY)["run"])


@pytest.mark.parametrize("name", FORGERIES)
def test_trials_cannot_be_left_out_of_the_ledger(name: str, tuned: Path, tmp_path: Path) -> None:
    """Nor charged less: whoever writes another ledger gets no certificate."""
    from veilgraph.run.verify import certify

    shutil.copytree(tuned, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    count, chosen = (event for event in run.ledger.events if event["event"] != "nothing")
    settings = [line for line in run.ledger.lines if line["charge"]["event"] == "nothing"]
    lines = [{"what": "forged", "charge": event} for event in FORGERIES[name](count, chosen)]
    rewrite(run.folder / "ledger.jsonl", [*lines, *settings])
    with pytest.raises(VerificationError, match="the best of"):
        certify(Run.open(run.folder))


def test_a_score_that_is_no_number_ranks_last(hospital: Graph, tmp_path: Path) -> None:
    """And does not stop the others: that would tell whether the statement is there."""
    graph = hospital.with_marks(mark(hospital, relations=["hasDiagnosis", "takes"]))
    run = private_run(graph, tmp_path / "run")
    secret = graph.split("valid")[graph.secret("valid")]
    run.parameters.entities[int(secret[0, 2])] = torch.inf
    total = trials.reciprocal_ranks(run, graph, np.random.default_rng(0))
    assert 0 < total < len(secret)


def test_only_a_study_is_touched(marked: Graph, tmp_path: Path) -> None:
    """A folder of somebody else's is refused, and another run's ledger is never charged."""
    (tmp_path / "mine" / "trial-0").mkdir(parents=True)
    run = private_run(marked, tmp_path / "run")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for name in ("mine", "run", "file"):
        with pytest.raises(UsageError, match="no study"):
            tune(marked, out=tmp_path / name, trials=2, **STUDY)
    assert (tmp_path / "mine" / "trial-0").is_dir()
    assert verify(run, marked)["valid"]


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_damaged_study_is_bad_input(text: str, marked: Graph, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match="damaged"):
        tune(marked, out=tmp_path, trials=2, **STUDY)


def test_a_trial_passes_for_nothing_even_half_done(
    marked: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ledger says so before its first step; a study whose ledger was replaced does not go on."""
    import importlib

    training = importlib.import_module("veilgraph.train.train")

    def killed(*given: Any, **named: Any) -> Any:
        raise Stop

    monkeypatch.setattr(training, "run_training", killed)
    with pytest.raises(Stop):
        tune(marked, out=tmp_path / "study", trials=2, **STUDY)
    monkeypatch.undo()
    assert not Run.open(tmp_path / "study" / "trial-0").ledger.private
    (tmp_path / "study" / "ledger.jsonl").unlink()
    with pytest.raises(VerificationError, match="began with"):
        tune(marked, out=tmp_path / "study", trials=2, **STUDY)


def test_a_killed_study_goes_on_without_paying_again(
    marked: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of trials stays, done ones are not done again, a half-done one starts anew."""
    monkeypatch.setattr(trials, "draw_number", lambda mean, rng: 3)
    real, calls = trials.train, 0

    def killed(*given: Any, **named: Any) -> Run:
        nonlocal calls
        calls += 1
        if calls == 2:
            (Path(named["out"])).mkdir()
            raise Stop
        return real(*given, **named)

    monkeypatch.setattr(trials, "train", killed)
    with pytest.raises(Stop):
        tune(marked, out=tmp_path / "study", trials=3, **STUDY)
    before = (tmp_path / "study" / "ledger.jsonl").read_bytes()
    trial = Run.open(tmp_path / "study" / "trial-0")
    assert trial.epsilon is None  # one of several: nothing can be promised for it
    assert (tmp_path / "study" / "study.json").stat().st_mode & 0o077 == 0
    with pytest.raises(RunError, match="of other settings"):
        tune(marked, out=tmp_path / "study", trials=4, **STUDY)
    wider = marked.with_marks(mark(marked, relations=["*"], unit="head", per_unit=10))
    with pytest.raises(RunError, match="other marks"):  # trial 0 protected others, and less of them
        tune(wider, out=tmp_path / "study", trials=3, **STUDY)
    found = tune(marked, out=tmp_path / "study", trials=3, **STUDY)
    assert calls == 4
    assert (tmp_path / "study" / "ledger.jsonl").read_bytes() == before
    assert verify(Run.open(found["run"]), marked)["valid"]


def test_a_study_without_its_number_of_trials_is_over(
    marked: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*given: Any, **named: Any) -> Run:
        raise Stop

    monkeypatch.setattr(trials, "train", killed)
    with pytest.raises(Stop):
        tune(marked, out=tmp_path / "study", trials=3, **STUDY)
    (tmp_path / "study" / "study.json").unlink()
    with pytest.raises(RunError, match="cannot be drawn again"):
        tune(marked, out=tmp_path / "study", trials=3, **STUDY)


def test_a_study_whose_trainings_all_diverge_has_spent_and_says_so(
    marked: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(*given: Any, **named: Any) -> Run:
        raise DivergedError("no")

    monkeypatch.setattr(trials, "train", diverge)
    with pytest.raises(InputError, match="is spent"):
        tune(marked, out=tmp_path / "study", trials=2, **STUDY)
    assert Ledger(tmp_path / "study" / "ledger.jsonl").spent(1e-6).epsilon > 1


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"mechanism": "select"}, PrivacyError),
        ({"insecure_noise_seed": 1}, PrivacyError),
        ({"clip_quantile": 0.5}, UsageError),
        ({"noise_multiplier": 3.0}, UsageError),
    ],
)
def test_tuning_refuses_what_the_bound_does_not_cover(
    asked: dict[str, Any], error: type[Exception], marked: Graph, tmp_path: Path
) -> None:
    with pytest.raises(error):
        tune(marked, out=tmp_path / "study", trials=2, **{**STUDY, **asked})
    assert not (tmp_path / "study" / "ledger.jsonl").exists()


def test_counts_alone_leave_nothing_to_tune(hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to search"):
        tune(hospital, out=tmp_path / "study", trials=2, model="marginals", epsilon=1.0)


def test_an_audit_of_the_winner_is_held_against_one_training(
    tuned: Path, hospital: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is trained again is one of them: the whole study's ε would let noise pass that is far too small."""
    from veilgraph.account.epsilon import spent
    from veilgraph.attack.audit import verdict as module

    claims: list[float] = []

    def vectors(
        graph: Graph, settings: object, canaries: int, claim: float, *rest: object
    ) -> dict[str, object]:
        claims.append(claim)
        return {
            "epsilon_claimed": claim,
            "epsilon_lower_bound": 0.0,
            "guarantee": "dp",
            "power": 9.0,
            "mechanism_level": "vectors",
        }

    monkeypatch.setattr(module, "audit_vectors", vectors)
    graph, run = hospital.with_marks(mark(hospital, relations=["hasDiagnosis", "takes"])), Run.open(tuned)
    assert module.audit(run, graph=graph)["claim_is_of"] == "one training of a study"
    (inside,) = [event["of"] for event in run.ledger.events if event["event"] == "selected"]
    assert claims[0] == pytest.approx(spent([inside], run.delta).epsilon)
    assert claims[0] < 0.9 * float(run.epsilon or 0)
    assert module.audit(run, graph=graph, claim=0.5)["claim_is_of"] == "the run"
    assert claims[1] == 0.5


def test_the_score_of_a_winner_is_one_that_can_be(
    marked: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest of noisy scores is no estimate, and a sum of reciprocal ranks is never below 0."""
    monkeypatch.setattr(trials, "noisy_score", lambda *_: -7.5)
    monkeypatch.setattr(trials, "draw_number", lambda *_: 2)
    found = tune(marked, out=tmp_path / "study", trials=2, **STUDY)
    assert found["score"] == 0
    assert "no estimate" in found["score_is"]
