"""Randomised response, end to end: what is charged is what lies, nothing is asked twice, neighbours differ in their own cells alone."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import random_graph
from tests.privacy.meters import OpenMeter
from veilgraph.account.epsilon import spent
from veilgraph.account.events import pure, repeated
from veilgraph.account.ledger import Ledger
from veilgraph.account.promise import Promise
from veilgraph.errors import PrivacyError, UsageError, VerificationError
from veilgraph.files import read_tensors
from veilgraph.layout import ANSWERED, CONFIG, LEDGER
from veilgraph.load import Graph
from veilgraph.mark import mark, may_be_confidential, unrestricted
from veilgraph.noise import integers, measure
from veilgraph.noise.gauss import source
from veilgraph.release.response import Questions, respond
from veilgraph.run.run import Run
from veilgraph.run.verify import verify
from veilgraph.train import answers, begin, resume, train
from veilgraph.train.private import begin as private_begin
from veilgraph.train.session import Session

QUICK: dict[str, Any] = {
    "model": "complex",
    "dimension": 8,
    "epochs": 2,
    "threads": 1,
    "mechanism": "respond",
    "accept_reached": True,
}


def marked(unit: str = "statement", per_unit: int | None = None, seed: int = 0) -> Graph:
    graph = random_graph(entities=60, relations=4, statements=900, seed=seed)
    return graph.with_marks(mark(graph, random_share=0.5, unit=unit, per_unit=per_unit))


def promise_for(graph: Graph, epsilon: float) -> Promise:
    per_unit = graph.marks.per_unit if graph.marks is not None else 1
    return Promise(100.0, per_unit, 60, 4, epsilon, mechanism="respond", answer_epsilon=epsilon)


def questions_of(graph: Graph, epsilon: float) -> Questions:
    return Questions.about(unrestricted(graph), may_be_confidential(graph), epsilon)


class Told(OpenMeter):
    """No coin lies; what the answers are asked of is kept."""

    def answers(self, truth: np.ndarray, asked: Any) -> np.ndarray:
        self.asked = asked
        return truth


@pytest.mark.parametrize(("unit", "cap"), [("statement", None), ("head", 3)])
def test_a_unit_is_in_no_more_cells_than_it_is_charged_for(unit: str, cap: int | None) -> None:
    """Sensitivity, on neighbours: without one unit the true answers differ in its own cells, at most per_unit of them, and what is asked
    is the same cell by cell."""
    graph = marked(unit, cap)
    assert graph.marks is not None
    secret = graph.secret("train")
    whose = graph.train[:, 0] if unit == "head" else graph.keys(graph.train)
    for one in np.unique(whose[secret])[:40]:
        kept = ~((whose == one) & secret)
        neighbour = graph.with_splits({**graph.splits, "train": graph.train[kept]})
        with_it, without = questions_of(graph, 2.0), questions_of(neighbour, 2.0)
        np.testing.assert_array_equal(with_it.cells.starts, without.cells.starts)
        np.testing.assert_array_equal(with_it.cells.tails, without.cells.tails)
        np.testing.assert_array_equal(with_it.cells.head, without.cells.head)
        meters = Told(source(insecure_seed=1)), Told(source(insecure_seed=1))
        promise = promise_for(graph, 2.0)
        # (every unit is below its cap but those that are cut, whose choice is the unit's own)
        truths = [
            respond(g, q, promise, m) for g, q, m in zip((graph, neighbour), (with_it, without), meters)
        ]
        own = with_it.cells.cells(graph.train[~kept])
        if cap is None:
            assert len(np.setxor1d(*truths)) <= 1
        assert len(np.setdiff1d(np.intersect1d(truths[0], own), truths[1])) <= promise.per_unit
        assert not np.isin(truths[1], own).any()
        assert meters[0].asked.per_unit == promise.per_unit


def test_what_lies_is_what_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ε coins are tossed with, read off below the tested code, is the ledger's; and a second accountant finds the claim."""
    tossed: list[tuple[int, float]] = []
    real = integers.lies

    def lies(cells: int, epsilon: float, coins: np.random.Generator) -> np.ndarray:
        tossed.append((cells, epsilon))
        return real(cells, epsilon, coins)

    monkeypatch.setattr(measure, "lies", lies)
    for unit, cap in (("statement", None), ("head", 3)):
        tossed.clear()
        run = train(marked(unit, cap), out=tmp_path / unit, epsilon=3.0, **QUICK)
        ((_, epsilon),) = tossed
        wanted = pure(epsilon) if cap is None else repeated(cap, pure(epsilon))
        number, *others = [event for event in run.ledger.events if event["event"] != "nothing"]
        assert others == [wanted]
        assert number == pure(0.03)
        assert (cap or 1) * epsilon + 0.03 >= 2.99  # (what was asked for is used)
        assert spent([number, *others], 0.0).epsilon <= 3.0 or cap is not None
        assert run.epsilon <= 3.0
        assert verify(run)["valid"]


def test_answers_are_as_true_as_charged() -> None:
    """Of 400 repetitions of all cells: the share of lies, within what a binomial does in all but one of 10⁸."""
    graph = marked()
    questions, promise = questions_of(graph, 1.0), promise_for(graph, 1.0)
    truth = questions.cells.cells(graph.train[graph.secret("train")])
    truth = np.unique(truth[truth >= 0])
    open_cells = np.setdiff1d(np.arange(len(questions.cells)), questions.known)
    chance, wrong, times = 1 / (1 + math.e), np.zeros(2), 400
    for _ in range(times):
        said = np.isin(open_cells, respond(graph, questions, promise, OpenMeter(source())))
        true = np.isin(open_cells, truth)
        wrong += (~said[true]).sum(), said[~true].sum()
    for found, cells in zip(wrong, (true.sum(), (~true).sum())):
        expected, deviation = times * cells * chance, math.sqrt(times * cells * chance * (1 - chance))
        assert abs(found - expected) < 6 * deviation


def test_without_a_delta(tmp_path: Path) -> None:
    """δ = 0 is promised and kept: the ledger holds nothing that has one."""
    run = train(marked(), out=tmp_path / "run", epsilon=2.0, delta=0.0, **QUICK)
    assert run.delta == 0
    assert 1.9 < run.epsilon <= 2.0
    assert run.certificate["accountant"] == "sum"
    assert verify(run)["valid"]
    counts = train(marked(), out=tmp_path / "counts", model="marginals", epsilon=2.0, delta=0.0, threads=1)
    assert 1.9 < counts.epsilon <= 2.0
    assert verify(counts)["valid"]


def test_answers_are_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before they are written they are drawn anew under the same charge; once written, a missing file is refused."""
    graph = marked()
    run = begin(graph, out=tmp_path / "run", epsilon=2.0, **QUICK)

    def killed(*given: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(answers, "write_tensors", killed)
        with pytest.raises(KeyboardInterrupt):
            Session.open(graph, run.config, run.folder, run.facts["units"])
    charged = len(Ledger(run.folder / LEDGER).lines)
    session = Session.open(graph, run.config, run.folder, run.facts["units"])
    first = read_tensors(run.folder / ANSWERED)[0]["yes"]
    assert len(Ledger(run.folder / LEDGER).lines) == charged + 1  # «answers are written», at no cost
    again = Session.open(graph, run.config, run.folder, run.facts["units"])
    assert again.ledger is not None
    assert again.ledger.events == session.ledger.events  # type: ignore[union-attr]
    assert (read_tensors(run.folder / ANSWERED)[0]["yes"] == first).all()
    (run.folder / ANSWERED).unlink()
    with pytest.raises(VerificationError, match="cannot be drawn again"):
        Session.open(graph, run.config, run.folder, run.facts["units"])


def test_answers_nobody_paid_for_are_refused(tmp_path: Path) -> None:
    graph = marked()
    paid = begin(graph, out=tmp_path / "paid", epsilon=2.0, **QUICK)
    Session.open(graph, paid.config, paid.folder, paid.facts["units"])
    other = begin(graph, out=tmp_path / "other", epsilon=2.0, **QUICK)
    shutil.copy(paid.folder / ANSWERED, other.folder / ANSWERED)
    with pytest.raises(VerificationError, match="does not charge it"):
        Session.open(graph, other.config, other.folder, other.facts["units"])


def test_a_training_on_answers_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    """Stopped in either phase and resumed: the same answers, the same charge, vectors that verify."""
    graph = marked()
    whole = {**QUICK, "epochs": 6}
    for stop in (2, 6):  # before the answers are weighed (three epochs), and after
        left = [stop]

        def listen(progress: Any, left: list[int] = left) -> None:
            left[0] -= progress.step == progress.steps
            if not left[0]:
                raise KeyboardInterrupt

        out = tmp_path / f"run{stop}"
        with pytest.raises(KeyboardInterrupt):
            train(graph, out=out, epsilon=2.0, listener=listen, checkpoint_seconds=0, **whole)
        before = read_tensors(out / ANSWERED)[0]["yes"]
        events = Ledger(out / LEDGER).events
        run = resume(out, graph=graph)
        assert (read_tensors(out / ANSWERED)[0]["yes"] == before).all()
        assert [e for e in run.ledger.events if e["event"] != "nothing"] == [
            e for e in events if e["event"] != "nothing"
        ]
        assert verify(run)["valid"]


def test_a_ledger_without_the_answers_is_no_certificate(tmp_path: Path) -> None:
    run = train(marked(), out=tmp_path / "run", epsilon=2.0, **QUICK)
    promise = Promise.of(run.config.as_dict(), run.facts)
    events = [event for event in run.ledger.events if event != promise.answered]
    assert promise.missing(events, counts_are_there=False, due=None, ended=False) == [
        "the ledger does not charge the answers"
    ]
    less = [pure(0.5) if event == promise.answered else event for event in run.ledger.events]
    assert promise.missing(less, counts_are_there=False, due=None, ended=False)
    text = (run.folder / CONFIG).read_text("utf-8")
    (run.folder / CONFIG).write_text(text.replace("answer_epsilon: 1.9", "answer_epsilon: 0.9"))
    assert not verify(Run.open(run.folder))["valid"]


def test_what_reaches_its_bound_needs_a_yes(tmp_path: Path) -> None:
    careful = {**QUICK, "accept_reached": False}
    with pytest.raises(PrivacyError, match=r"rely on it in 99\.97 of 100"):
        train(marked(), out=tmp_path / "run", epsilon=8.0, **careful)
    assert not (tmp_path / "run").exists()
    assert train(marked(), out=tmp_path / "modest", at_most_sure=0.88, **careful).epsilon <= 1.9925
    for more in ({"private_steps": 3}, {"noise_multiplier": 2.0}):
        with pytest.raises(UsageError, match=r"would do nothing|needs --epsilon"):
            train(marked(), out=tmp_path / "run", epsilon=2.0, **{**QUICK, **more})


def test_units_of_several_statements_are_priced_by_the_lesser_bound(tmp_path: Path) -> None:
    """Forty answers: composed at δ = 1e-6 each may have a larger ε than a fortieth of the budget."""
    graph = marked("head", 40)
    run = begin(graph, out=tmp_path / "run", epsilon=1.0, **QUICK)
    each = float(run.config.answer_epsilon or 0)
    assert each > 1.05 * 0.99 / 40
    assert spent([pure(0.01), repeated(40, pure(each))], 1e-6).epsilon <= 1.0
    exact = begin(graph, out=tmp_path / "exact", epsilon=1.0, delta=0.0, **QUICK)
    assert float(exact.config.answer_epsilon or 0) == pytest.approx(0.99 / 40, rel=1e-3)


def test_nothing_is_asked_where_no_rule_allows_a_confidential_statement(tmp_path: Path) -> None:
    graph = random_graph(entities=60, relations=4, statements=900)
    graph = graph.with_marks(mark(graph, relations=[graph.relations[1]]))
    public = unrestricted(graph)
    counted = np.random.default_rng(0).exponential(size=(8, 60)).astype(np.float32)
    questions = Questions.about(public, may_be_confidential(graph), 2.0, counted)
    asked = questions.cells.statements(np.arange(len(questions.cells)))
    assert set(asked[:, 1].tolist()) == {1}


def test_counts_come_first_where_only_they_suggest_what_to_ask(tmp_path: Path) -> None:
    graph = random_graph(entities=60, relations=4, statements=900)
    graph = graph.with_marks(mark(graph, everything=True))
    run = train(graph, out=tmp_path / "run", epsilon=6.0, **QUICK)
    counted = [event for event in run.ledger.events if event["event"] == "together"]
    assert counted == [{"event": "together", "all": [pure(1.5)]}]
    assert 5.99 < run.epsilon <= 6.0
    assert verify(run)["valid"]


def test_settling_reads_no_more_than_one_noisy_number(tmp_path: Path) -> None:
    """Two neighbours, the same noisy number: the same settings."""
    graph = marked()
    few = graph.with_splits({**graph.splits, "train": graph.train[:-1]})
    settings = []
    for number, one in enumerate((graph, few)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(private_begin, "counted_units", lambda *given: 412.0)
            run = begin(one, out=tmp_path / f"{number}", epsilon=2.0, **QUICK)
            settings.append(replace(run.config).as_dict())
    assert settings[0] == settings[1]


def test_what_is_asked_follows_from_unrestricted_statements(tmp_path: Path) -> None:
    """The product's own questions, on neighbours: cell by cell the same."""
    graph = marked()
    kept = np.delete(np.arange(len(graph.train)), np.flatnonzero(graph.secret("train"))[:5])
    neighbour = graph.with_splits({**graph.splits, "train": graph.train[kept]})
    promise, found = promise_for(graph, 2.0), []
    for one in (graph, neighbour):
        made = answers.Answers(one, unrestricted(one), promise, tmp_path).questions(None)
        found.append(made.cells.statements(np.arange(len(made.cells))))
    np.testing.assert_array_equal(found[0], found[1])


def test_counts_of_answers_cost_nothing_and_are_kept(tmp_path: Path) -> None:
    """``--prior public``: what is public and what was answered is counted; refused where there are no answers."""
    run = train(marked(), out=tmp_path / "run", epsilon=2.0, prior="public", **QUICK)
    assert (run.folder / "marginals.safetensors").is_file()
    assert [event["event"] for event in run.ledger.events if event["event"] != "nothing"] == ["pure", "pure"]
    assert run.prior is not None
    assert verify(run)["valid"]
    for more in ({"epsilon": 2.0}, {}):
        with pytest.raises(UsageError, match="goes with mechanism respond"):
            train(marked(), out=tmp_path / "other", model="complex", prior="public", **more)


def test_answers_are_not_given_in_rounds(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not joined yet"):
        begin(marked(), out=tmp_path / "run", epsilon=2.0, in_rounds=True, **QUICK)
