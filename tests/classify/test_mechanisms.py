"""What one unit can change, how much noise there is, and the public features beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.classify.clubs import SETTINGS
from veilgraph.account.ledger import Ledger
from veilgraph.classify import classify, folds_of
from veilgraph.classify.config import ClassifyConfig
from veilgraph.classify.guarantees import Task, guarantee
from veilgraph.classify.guarantees.base import Book
from veilgraph.classify.guarantees.edge import SENSITIVITY, SUMS, messages, sums_of
from veilgraph.classify.guarantees.node import features
from veilgraph.classify.perceptron import Perceptron
from veilgraph.classify.places import places
from veilgraph.classify.private_steps import STATE, private_fit
from veilgraph.classify.spread import Spread
from veilgraph.errors import BudgetError
from veilgraph.load.labels import Labels


@pytest.mark.parametrize("way", SENSITIVITY)
def test_a_statement_moves_sums_no_further_than_is_charged(way: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        sent = rng.normal(size=(6, 4)) * rng.choice([0.1, 1, 100], size=(6, 1))  # whatever a caller sends
        statements = rng.integers(0, 6, (int(rng.integers(1, 9)), 3))  # loops and repetitions among them
        whole = sums_of(sent, statements, 6, way)
        less = sums_of(sent, statements[1:], 6, way)
        assert np.linalg.norm(whole - less) <= SENSITIVITY[way] + 1e-12


def test_a_message_that_is_no_number_is_not_sent() -> None:
    """Noise on it would be no number either, and would tell whose statements it was sent along."""
    sent = np.eye(4)
    sent[1, 2], sent[2, 0] = np.nan, np.inf
    found = sums_of(sent, np.array([[0, 0, 1], [0, 0, 2], [3, 0, 0]]), 4, "heads")
    assert np.isfinite(found).all()
    assert np.abs(found).sum() == 1  # of the one message that is


def test_messages_are_bounded(task: Task) -> None:
    rng = np.random.default_rng(0)
    found = messages(rng.random((task.nodes, 3)) * 100, task)
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize("into", ["heads", "both", "heads,tails"])
def test_noise_is_what_the_ledger_says(task: Task, tmp_path: Path, into: str) -> None:
    """With no confidential statement at all, sums are noise: its deviation is the multiplier times the sensitivity."""
    nothing = Task(
        task.triples, np.zeros(len(task.triples), bool), task.nodes, 3, task.labels, task.folds, task.truth
    )
    config = ClassifyConfig(guarantee="edge", epsilon=1.0, into=into, hops=4)
    book = Book.open(tmp_path, config)
    guarantee("edge").learn(nothing, config, book)
    multiplier = book.ledger.events[0]["of"]["noise_multiplier"]
    from veilgraph.files import read_arrays

    for number, way in enumerate(config.ways):
        rows = read_arrays(tmp_path / SUMS)[0][f"sum{number}"]
        assert rows.shape[0] == task.nodes  # every entity's, whether it has statements or not
        assert rows.std() == pytest.approx(multiplier * SENSITIVITY[way], rel=0.12)  # five of its deviations
    assert book.ledger.spent(1e-5).epsilon <= 1.0


def test_sums_are_released_once(town: Path, tmp_path: Path) -> None:
    out, settings = tmp_path / "out", {"guarantee": "edge", "epsilon": 3.0, **SETTINGS}
    classify(town, out=out, **settings)
    before = (out / "ledger.jsonl").read_bytes(), (out / SUMS).read_bytes()
    classify(town, out=out, **settings)
    assert before == ((out / "ledger.jsonl").read_bytes(), (out / SUMS).read_bytes())
    (out / SUMS).unlink()
    with pytest.raises(BudgetError, match="spent"):
        classify(town, out=out, **settings)


@pytest.mark.parametrize("between", [0, 5])
@pytest.mark.parametrize("several", [False, True])
def test_clipped_sums_equal_a_loop(between: int, several: bool) -> None:
    head = Perceptron.new(4, 3, between=between, several=several, seed=0)
    head.matrices = [m + 0.3 * torch.randn_like(m) for m in head.matrices]
    rows, truth = 3 * torch.randn(20, 4), torch.eye(3)[torch.randint(3, (20,))]
    wanted = [torch.zeros_like(m) for m in head.matrices]
    for row, one in zip(rows, truth):
        leaves = [m.clone().requires_grad_() for m in head.matrices]
        out = Perceptron(leaves, several).scores(row[None])
        if several:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(out, one[None], reduction="sum")
        else:
            loss = torch.nn.functional.cross_entropy(out, one[None], reduction="sum")
        gradients = torch.autograd.grad(loss, leaves)
        norm = torch.sqrt(sum(g.square().sum() for g in gradients))
        for total, g in zip(wanted, gradients):
            total += g * min(1.0, 0.7 / float(norm))
    for found, total in zip(head.gradients(rows, truth, 0.7), wanted):
        torch.testing.assert_close(found.float(), total, atol=5e-3, rtol=5e-3)
    alone = head.gradients(rows[:1] * 100, truth[:1], 0.7)
    assert float(torch.sqrt(sum(g.square().sum() for g in alone))) <= 0.7


def test_no_other_entity_reads_an_entitys_statements(task: Task) -> None:
    config = ClassifyConfig(guarantee="node", epsilon=1.0, places=8, hops=2)
    whole = features(task, config)
    person = int(task.confidential[0, 0])
    kept = ~(task.secret & (task.triples[:, 0] == person))
    less = Task(task.triples[kept], task.secret[kept], task.nodes, 3, task.labels, task.folds, task.truth)
    moved = np.flatnonzero((features(less, config) != whole).any(1))
    assert moved.tolist() == [person]


def test_who_is_learnt_from_does_not_depend_on_others(town: Path) -> None:
    labels = Labels(np.arange(50), np.arange(50) % 2, ["a", "b"])
    fewer = Labels(labels.entity[1:], labels.label[1:], labels.names)
    whole, less = (folds_of(one, 60, 0.3, 4) for one in (labels, fewer))
    assert set(whole.train) - {0} == set(less.train) - {0}
    assert set(whole.test) - {0} == set(less.test) - {0}


def test_steps_are_paid_for_before_they_are_taken_and_go_on_after_a_crash(tmp_path: Path) -> None:
    config = ClassifyConfig(guarantee="label", epsilon=2.0, steps=120, places=4)
    rows, truth = torch.randn(200, 4), torch.eye(2)[torch.arange(200) % 2]
    private_fit(rows, truth, config, Book.open(tmp_path, config))
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert sum(event.get("times", 0) for event in ledger.events) == 120
    assert ledger.spent(1e-5).epsilon <= 2.0
    (tmp_path / "curator" / STATE).unlink()  # all was lost, and nothing is left to spend
    again = private_fit(rows, truth, config, Book.open(tmp_path, config))
    assert sum(event.get("times", 0) for event in Ledger(tmp_path / "ledger.jsonl").events) <= 121
    assert Ledger(tmp_path / "ledger.jsonl").spent(1e-5).epsilon <= 2.0
    assert len(again.matrices) == 1


def test_private_steps_add_noise_to_every_number(tmp_path: Path) -> None:
    """Where hardly any example is in a batch a step is noise alone, and reaches everything."""
    config = ClassifyConfig(guarantee="label", epsilon=1.0, steps=1, sample_rate=0.001, places=40)
    rows, truth = torch.randn(50, 40), torch.eye(5)[torch.arange(50) % 5]
    found = private_fit(rows, truth, config, Book.open(tmp_path, config))
    assert (found.matrices[0] != 0).all()


def watched_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, **settings: object
) -> list[torch.Tensor]:
    """What the optimiser is given by steps without noise, on so many examples with features of norm 300."""
    from veilgraph.classify import private_steps
    from veilgraph.classify.perceptron import Adam

    found: list[torch.Tensor] = []
    step = Adam.step

    def spy(self: Adam, gradients: list[torch.Tensor]) -> None:
        found.append(gradients[0].clone())
        step(self, gradients)

    monkeypatch.setattr(Adam, "step", spy)
    monkeypatch.setattr(private_steps, "_noisy", lambda exact, noise: exact.float())
    monkeypatch.setattr(private_steps, "_count", lambda exact, book: 100.0)
    tmp_path.mkdir(exist_ok=True)
    config = ClassifyConfig(guarantee="label", epsilon=2.0, places=9, **settings)
    rows, truth = torch.full((count, 9), 100.0), torch.eye(2)[torch.zeros(count, dtype=torch.long)]
    private_fit(rows, truth, config, Book.open(tmp_path, config))
    monkeypatch.undo()
    return found


def test_private_steps_are_divided_by_what_is_public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the examples make twice the step: it is divided by the expected (public) number, not by the drawn one."""
    given = {"steps": 1, "sample_rate": 1.0, "clip": 0.6}
    once = watched_steps(tmp_path / "one", monkeypatch, 100, **given)[0]
    twice = watched_steps(tmp_path / "two", monkeypatch, 200, **given)[0]
    torch.testing.assert_close(2 * once, twice)


def test_private_steps_clip_at_what_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = watched_steps(tmp_path, monkeypatch, 1, steps=1, sample_rate=1.0, clip=0.6)
    assert 0.59 <= 100 * float(found.norm()) <= 0.6


def test_the_number_of_labelled_entities_is_noisy(tmp_path: Path) -> None:
    config = ClassifyConfig(guarantee="label", epsilon=2.0, steps=1, places=4)
    rows, truth = torch.randn(300, 4), torch.eye(2)[torch.arange(300) % 2]
    found = []
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        book = Book.open(tmp_path / name, config)
        private_fit(rows, truth, config, book)
        found.append(float(book.ledger.found("examples")))
    assert len({*found, 300.0}) == 4
    assert all(150 < one < 450 for one in found)  # seven of its deviations


def test_places_of_neighbours_are_alike() -> None:
    clubs = np.array([[3 * a + c, 0, 3 * b + c] for c in range(3) for a in range(20) for b in (a + 1, a + 7)])
    clubs[:, [0, 2]] %= 60
    found = places(clubs, 61, 16, 16, 0)
    assert not found[60].any()  # without any edge nothing is known
    alike = found[:60] @ found[:60].T
    same = np.equal.outer(np.arange(60) % 3, np.arange(60) % 3)
    assert alike[same].mean() > alike[~same].mean() + 0.2


def test_labels_spread_and_stay_honest() -> None:
    chain = np.stack([np.arange(9), np.zeros(9, int), np.arange(1, 10)], 1)
    truth = np.zeros((10, 2))
    truth[:5, 0], truth[5:, 1] = 1, 1
    spread = Spread(chain, 10)
    found = spread.labels(truth, np.array([0, 9]))
    assert found.argmax(1).tolist() == [0] * 5 + [1] * 5
    known = np.arange(10)
    whole, others = spread.labels(truth, known), spread.honest(truth, known, 0)
    assert (whole[known].argmax(1) == truth.argmax(1)).all()
    assert (whole[known] != others[known]).any(1).all()  # nobody is told by its own label
