"""Labels with a guarantee: what one unit can change, what is charged, what a folder shows, and what tampering does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from veilgraph.account.ledger import Ledger
from veilgraph.cli import main
from veilgraph.errors import BudgetError, InputError, PrivacyError, RunError, UsageError, VeilError
from veilgraph.load import Graph, load, save
from veilgraph.load.labels import Labels, labels_by
from veilgraph.mark import mark
from veilgraph.train.classify import classify, folder, folds_of
from veilgraph.train.classify.config import ClassifyConfig
from veilgraph.train.classify.folds import truth_of
from veilgraph.train.classify.guarantees import Task, available, guarantee
from veilgraph.train.classify.guarantees.base import Book
from veilgraph.train.classify.guarantees.edge import SENSITIVITY, SUMS, messages, sums_of
from veilgraph.train.classify.guarantees.node import features
from veilgraph.train.classify.perceptron import Perceptron
from veilgraph.train.classify.places import places
from veilgraph.train.classify.private_steps import STATE, private_fit
from veilgraph.train.classify.spread import Spread


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 people of three clubs: what they hold is confidential, which club a card is of is not."""
    path, rng = tmp_path_factory.mktemp("town"), np.random.default_rng(0)
    lines = [f"card{c}{i}\tof\tclub{c}\n" for c in range(3) for i in range(8)]
    lines += [f"card{c}{i}\tlike\tcard{c}{(i + 1) % 8}\n" for c in range(3) for i in range(8)]
    for person in range(300):
        lines += [f"p{person}\tholds\tcard{person % 3}{i}\n" for i in rng.choice(8, 5, replace=False)]
    (path / "all.tsv").write_text("".join(lines))
    graph = load(path / "all.tsv")
    save(graph.with_marks(mark(graph, relations=["holds"])), path / "graph")
    (path / "graph" / "labels.tsv").write_text("".join(f"p{i}\tclub{i % 3}\n" for i in range(300)))
    return path / "graph"


CLUBS = ["club0", "club1", "club2"]
SETTINGS: dict[str, Any] = {"share": 0.5, "threads": 1, "names": CLUBS}
HOSPITAL: dict[str, Any] = {"share": 0.5, "threads": 1}


def task_of(graph: Graph, labels: Labels, seed: int = 0) -> Task:
    nodes = len(graph.entities)
    folds = folds_of(labels, nodes, 0.5, seed)
    return Task(
        graph.train,
        graph.secret("train"),
        nodes,
        len(graph.relations),
        labels,
        folds,
        truth_of(labels, nodes),
    )


@pytest.fixture(scope="module")
def task(town: Path) -> Task:
    from veilgraph.load.labels import read_labels

    graph = load(town)
    return task_of(graph, read_labels(graph))


# --- every guarantee --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", available())
def test_every_guarantee_stays_within_its_budget_and_can_be_verified(
    name: str, town: Path, tmp_path: Path
) -> None:
    found = classify(town, guarantee=name, epsilon=3.0, out=tmp_path / "out", steps=60, **SETTINGS)
    assert 0 < found["epsilon"] <= 3.0
    assert found["guarantee"] == name
    said = folder.verify(tmp_path / "out")
    assert said["valid"], said["reasons"]
    assert said["epsilon"] == pytest.approx(found["epsilon"])
    certificate = folder.read_certificate(tmp_path / "out")
    assert certificate["unit"] == guarantee(name).unit
    assert certificate["guarantee"] == "dp"
    open_answers = (tmp_path / "out" / "answers.tsv").exists()
    assert open_answers == (name != "node")  # a node's answer is made from its own statements


@pytest.mark.parametrize("name", available())
def test_what_is_edited_fails(name: str, town: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    classify(town, guarantee=name, epsilon=3.0, out=out, steps=60, **SETTINGS)
    ledger = (out / "ledger.jsonl").read_text()
    (out / "ledger.jsonl").write_text("".join(ledger.splitlines(keepends=True)[:-1]))
    assert not folder.verify(out)["valid"]
    (out / "ledger.jsonl").write_text(ledger)
    assert folder.verify(out)["valid"]
    about = json.loads((out / "classification.json").read_text())
    about["settings"]["delta"] = 1e-3
    (out / "classification.json").write_text(json.dumps(about))
    assert not folder.verify(out)["valid"]


@pytest.mark.parametrize("name", available())
def test_a_seed_for_the_noise_is_no_guarantee(name: str, town: Path, tmp_path: Path) -> None:
    settings = {"guarantee": name, "epsilon": 3.0, "steps": 20, "insecure_noise_seed": 1, **SETTINGS}
    first, second = (classify(town, **settings) for _ in range(2))
    assert first == second
    assert first["epsilon"] is None
    classify(town, out=tmp_path / "out", **settings)
    assert folder.read_certificate(tmp_path / "out")["epsilon"] is None
    for number in range(2):
        fresh = {**settings, "insecure_noise_seed": None, "out": tmp_path / f"fresh{number}"}
        classify(town, **fresh)
    released = [(tmp_path / f"fresh{number}" / "network.safetensors").read_bytes() for number in range(2)]
    assert released[0] != released[1]


@pytest.mark.parametrize(("name", "least"), [("edge", 0.8), ("node", 0.8)])
def test_little_noise_leaves_much_to_learn(town: Path, name: str, least: float) -> None:
    found = classify(town, guarantee=name, epsilon=50.0, steps=100, hops=16, **SETTINGS)
    assert found["accuracy"] > least  # a coin: 1/3
    assert classify(town, drop_confidential=True, epochs=20, **SETTINGS)["accuracy"] < 0.5


def test_labels_can_be_protected_on_a_public_graph(town: Path) -> None:
    found = classify(
        town.parent / "all.tsv",
        town / "labels.tsv",
        guarantee="label",
        epsilon=50.0,
        steps=100,
        hops=32,
        **SETTINGS,
    )
    assert found["accuracy"] > 0.8


# --- edge ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", SENSITIVITY)
def test_a_statement_moves_sums_no_further_than_is_charged(way: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        sent = rng.normal(size=(6, 4)) * rng.choice([0.1, 1, 100], size=(6, 1))  # whatever a caller sends
        statements = rng.integers(0, 6, (int(rng.integers(1, 9)), 3))  # loops and repetitions among them
        whole = sums_of(sent, statements, 6, way)
        less = sums_of(sent, statements[1:], 6, way)
        assert np.linalg.norm(whole - less) <= SENSITIVITY[way] + 1e-12


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


# --- label and node -----------------------------------------------------------------------------------------------------
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


# --- what a reviewer found --------------------------------------------------------------------------------------------
def test_nothing_public_gives_noise_and_not_gaps(town: Path, tmp_path: Path) -> None:
    """Places of nobody are zeros: rows that are no numbers would show who has a statement."""
    from veilgraph.files import read_arrays

    graph = load(town.parent / "all.tsv")
    classify(graph, town / "labels.tsv", guarantee="edge", epsilon=1.0, out=tmp_path / "out", **SETTINGS)
    assert np.isfinite(read_arrays(tmp_path / "out" / SUMS)[0]["sum0"]).all()
    assert not places(np.array([[0, 0, 0]]), 3, 4, 4, 0)[1:].any()
    assert np.isfinite(places(np.empty((0, 3), int), 3, 4, 4, 0)).all()
    wild = np.array([[np.nan, 1.0], [np.inf, 0.0], [1.0, 0.0]])
    assert np.isfinite(sums_of(wild, np.array([[0, 0, 1], [2, 0, 0], [1, 0, 2]]), 3, "both")).all()


@pytest.mark.parametrize("name", available())
def test_a_ledger_cannot_be_cut_back_by_running_again(name: str, town: Path, tmp_path: Path) -> None:
    out, settings = tmp_path / "out", {"guarantee": name, "epsilon": 2.0, "steps": 120, **SETTINGS}
    classify(town, out=out, **settings)
    ledger = out / "ledger.jsonl"
    whole = ledger.read_text()
    lines = whole.splitlines(keepends=True)
    for less in (
        "",
        lines[0] if name != "edge" else "",
        whole.replace('"noise_multiplier": ', '"noise_multiplier": 9'),
    ):
        ledger.write_text(less)
        with pytest.raises(VeilError):
            classify(town, out=out, **settings)
    ledger.write_text(whole)
    classify(town, out=out, **settings)
    assert folder.verify(out)["valid"]


def test_the_list_of_labels_does_not_come_from_protected_ones(town: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.tsv"
    table.write_text((town / "labels.tsv").read_text() + "p7\tsecret\n")
    for name in ("label", "node"):
        with pytest.raises(PrivacyError, match="label-names"):
            classify(town, table, guarantee=name, epsilon=1.0, share=0.5)
        found = classify(town, table, guarantee=name, epsilon=1.0, steps=5, **SETTINGS)
        assert found["labels"] == 3  # whoever has another is as if unlabelled
    listed = tmp_path / "names.txt"
    listed.write_text("\n".join(CLUBS))
    assert (
        classify(town, table, guarantee="label", epsilon=1.0, steps=5, share=0.5, names=listed)["labels"] == 3
    )


def test_a_table_that_is_not_there_is_not_replaced_by_another(town: Path) -> None:
    with pytest.raises(InputError, match="no table"):
        classify(town, town / "typo.tsv")


@pytest.mark.parametrize(
    "file", ["classification.json", "certificate.json", "ledger.jsonl", "aggregates.safetensors"]
)
@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"settings": 5}', "\x00"])
def test_damaged_folders_are_not_valid(town: Path, tmp_path: Path, file: str, content: str) -> None:
    out = tmp_path / "out"
    classify(town, guarantee="edge", epsilon=2.0, out=out, **SETTINGS)
    (out / file).write_text(content)
    said = folder.verify(out)
    assert not said["valid"]
    assert said["reasons"]


# --- public features ------------------------------------------------------------------------------------------------------
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
    whole, others = spread.honest(truth, known, 0)
    assert (whole[known].argmax(1) == truth.argmax(1)).all()
    assert (whole[known] != others[known]).any(1).all()  # nobody is told by its own label


# --- labels and errors ----------------------------------------------------------------------------------------------------
def test_labels_at_the_end_of_a_path(hospital: Graph) -> None:
    found = labels_by(hospital, "admittedTo/wardOf")
    assert all(name.startswith("specialty/") for name in found.names)
    assert all(hospital.entities[int(e)].startswith("patient/") for e in found.entity)
    direct = labels_by(hospital, "specialisesIn")
    assert all(hospital.entities[int(e)].startswith("doctor/") for e in direct.entity)
    with pytest.raises(InputError, match="no entity has a label"):
        labels_by(hospital, "wardOf/admittedTo")
    with pytest.raises(InputError, match="no path"):
        labels_by(hospital, "/")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"guarantee": "edge"}, "give both"),
        ({"epsilon": 1.0}, "give both"),
        ({"guarantee": "moon", "epsilon": 1.0}, "guarantee"),
        ({"guarantee": "edge", "epsilon": 1.0, "into": "sideways"}, "into"),
        ({"guarantee": "edge", "epsilon": 1.0, "drop_confidential": True}, "needs no guarantee"),
        ({"guarantee": "edge", "epsilon": -1.0}, "epsilon"),
        ({"out": "somewhere"}, "nothing may"),
        ({"guarantee": "edge", "epsilon": 1.0, "out": "somewhere", "seeds": 2}, "its own"),
    ],
)
def test_wrong_wishes_are_explained(town: Path, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(Exception, match=says) as error:
        classify(town, **wrong)  # type: ignore[arg-type]
    assert isinstance(error.value, VeilError)
    assert not Path("somewhere").exists()


def test_a_statement_counts_once_however_often_it_is_there(town: Path) -> None:
    from veilgraph.load.labels import read_labels
    from veilgraph.train.classify import _task

    graph, config = load(town), ClassifyConfig(guarantee="edge", epsilon=1.0)
    secret = graph.train[graph.secret("train")][:1]
    doubled = graph.with_splits({"train": graph.train, "test": np.concatenate([secret, secret])})
    labels = read_labels(graph)
    folds = folds_of(labels, len(graph.entities), 0.5, 0)
    made = _task(doubled, np.ones(len(doubled.triples), bool), labels, folds, config)
    assert len(made.triples) == len(graph.train)
    assert made.secret.sum() == graph.secret("train").sum()


def test_what_would_promise_less_than_was_asked_for_is_refused(hospital: Graph) -> None:
    heads = hospital.with_marks(mark(hospital, relations=["has*"], unit="head", per_unit=5))
    with pytest.raises(PrivacyError, match="unit is head"):
        classify(heads, by="specialisesIn", guarantee="edge", epsilon=1.0, **HOSPITAL)
    admitted = hospital.with_marks(mark(hospital, relations=["admittedTo"]))
    with pytest.raises(PrivacyError, match="admittedTo"):
        classify(admitted, by="admittedTo/wardOf", guarantee="edge", epsilon=1.0, **HOSPITAL)
    with pytest.raises(PrivacyError, match="specialisesIn"):  # unmarked: everything is confidential
        classify(hospital, by="specialisesIn", guarantee="edge", epsilon=1.0, **HOSPITAL)
    found = classify(admitted, by="admittedTo/wardOf", guarantee="node", epsilon=1.0, steps=5, **HOSPITAL)
    assert found["epsilon"] <= 1.0


def test_a_folder_belongs_to_its_settings(town: Path, tmp_path: Path) -> None:
    classify(town, guarantee="edge", epsilon=3.0, out=tmp_path / "out", **SETTINGS)
    with pytest.raises(RunError, match="other settings"):
        classify(town, guarantee="edge", epsilon=4.0, out=tmp_path / "out", **SETTINGS)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thing").write_text("")
    with pytest.raises(UsageError, match="not a classification"):
        classify(town, guarantee="edge", epsilon=3.0, out=tmp_path / "other", **SETTINGS)


def test_commands(town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    words = ["classify", str(town), "--share", "0.5", "--guarantee", "edge", "--epsilon", "4", "--out", out]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {
        "task",
        "model",
        "accuracy",
        "interval",
        "macro_f1",
        "seeds",
        "epsilon",
        "delta",
        "guarantee",
    } <= set(said)
    assert main(["certificate", out]) == 0
    assert "one confidential statement" in " ".join(capsys.readouterr().out.split())
    assert main(["certificate", "verify", out, "--json"]) == 0
    (tmp_path / "out" / "answers.tsv").write_text("p0\tclub0\t1\n")
    capsys.readouterr()
    assert main(["certificate", "verify", out, "--json"]) == 5
    assert "answers.tsv" in json.dumps(json.loads(capsys.readouterr().out)["reasons"])
