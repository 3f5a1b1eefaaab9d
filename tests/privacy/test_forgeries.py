"""What a reviewer forged after the middle was rebuilt: each made a false certificate that verified, or hid what it showed."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ledgers import rewrite
from veilgraph import registry
from veilgraph.account.events import nothing
from veilgraph.account.ledger import Ledger
from veilgraph.account.prices import StepTerms
from veilgraph.errors import InputError, PrivacyError, VerificationError
from veilgraph.layout import CERTIFICATE, ENTITIES
from veilgraph.load import Graph, load
from veilgraph.load.mapping import SHIPPED, marks_beside
from veilgraph.mark import mark
from veilgraph.mark.units import Head
from veilgraph.report.findings import find
from veilgraph.run import open_run
from veilgraph.run.run import Run
from veilgraph.run.verify import certify, verify
from veilgraph.sanitise import Request, Sanitiser, sanitise, sanitisers
from veilgraph.train import train
from veilgraph.train.mechanisms import mechanism_class
from veilgraph.train.mechanisms.dense import Dense

QUICK: dict[str, Any] = {"model": "distmult", "dimension": 4, "epochs": 3, "threads": 1, "epsilon": 1.0}
STEPS: dict[str, Any] = {"private_steps": 4, "sample_rate": 0.5, "prior": "none", "mechanism": "dense"}


@pytest.fixture
def added() -> Iterator[list[tuple[str, str]]]:
    """Components of a test, gone afterwards."""
    names: list[tuple[str, str]] = []
    yield names
    for kind, name in names:
        registry._added[kind].pop(name, None)


def cut(run: Run, *, without: str, more: dict[str, Any] | None = None) -> Run:
    """The run with a ledger that lacks all lines that hold a word, certified again if that is let through."""
    path = run.folder / "ledger.jsonl"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if without not in line]
    rewrite(path, kept)
    if more is not None:
        Ledger(path).charge(nothing(), "stopped early", **more)
    (run.folder / CERTIFICATE).unlink()
    return open_run(run.folder)


def test_rules_of_a_mapping_are_said_and_come_from_no_stray_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "synthea.marks.yaml").write_text("rules:\n- relation: urn:synthea:hasGender\n")
    monkeypatch.chdir(tmp_path)
    assert marks_beside("synthea") == SHIPPED / "synthea.marks.yaml"
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "patients.csv").write_text("Id,RACE,GENDER\n1,white,F\n2,asian,M\n")
    with caplog.at_level(logging.WARNING):
        graph = load(f"tables:{folder}", mapping="synthea")
    assert graph.marks is not None
    assert (
        "statements are confidential, by synthea.marks.yaml; the others are read as they are" in caplog.text
    )


def test_nothing_bears_a_built_in_name() -> None:
    class Quiet(Dense):
        """No noise."""

        name = "dense"

    class Loose(Head):
        """Everything by itself."""

        name = "head"

    for kind, one in (("mechanisms", Quiet), ("units", Loose)):
        with pytest.raises(InputError, match="of veilgraph's own"):
            registry.add(kind, one)


def test_a_mechanism_that_measures_nothing_moves_nothing(
    hospital: Graph, tmp_path: Path, added: list[tuple[str, str]]
) -> None:
    class Quiet(Dense):
        """Forgets its noise."""

        name = "quiet"

        def release(self, p: Any, optimisers: Any, step: Any) -> None:
            return

    registry.add("mechanisms", Quiet)
    added.append(("mechanisms", "quiet"))
    graph = hospital.with_marks(mark(hospital, everything=True))
    with pytest.raises(PrivacyError, match="without noise that was measured"):
        train(graph, out=tmp_path / "run", **QUICK, **{**STEPS, "mechanism": "quiet"})


def test_a_certificate_names_code_of_others(
    hospital: Graph, tmp_path: Path, added: list[tuple[str, str]]
) -> None:
    class Theirs(Dense):
        """Dense."""

        name = "theirs"

    registry.add("mechanisms", Theirs)
    added.append(("mechanisms", "theirs"))
    graph = hospital.with_marks(mark(hospital, everything=True))
    run = train(graph, out=tmp_path / "run", **QUICK, **{**STEPS, "mechanism": "theirs"})
    assert f"mechanism theirs, whose code is {__name__}" in run.certificate["decided_from"]
    assert verify(run, graph)["valid"]


def test_a_sanitiser_that_says_it_reads_no_scores_sees_none(added: list[tuple[str, str]]) -> None:
    class Best(Sanitiser):
        """The exact best, whatever was spent before."""

        name = "best"
        promise = "nothing formal"

        def apply(self, request: Request, rng: np.random.Generator) -> np.ndarray:
            return np.argsort(-request.scores, 1, kind="stable")[:, : request.size]

    registry.add("sanitisers", Best)
    added.append(("sanitisers", "best"))
    scores = np.random.default_rng(0).random((50, 30)).astype(np.float32)
    asked = Request(scores, np.ones_like(scores, bool), 3, np.ones(30), public_items=True, repeat=True)
    found = sanitise(asked, sanitisers("exponential:budget=0.1,best"), seed=0)
    assert (found != np.argsort(-scores, 1)[:, :3]).any(1).all()


def test_a_seeded_noise_cannot_be_forgotten(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, everything=True))
    run = train(graph, out=tmp_path / "run", **QUICK, insecure_noise_seed=7)
    with pytest.raises(VerificationError, match="given seed"):
        certify(cut(run, without="given seed"))


def test_one_of_several_trainings_cannot_pose_as_a_run(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, everything=True))
    run = train(graph, out=tmp_path / "run", one_of_several=True, **QUICK)
    assert run.epsilon is None
    with pytest.raises(VerificationError, match="one of several"):
        certify(cut(run, without='"trial"'))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_steps_that_no_early_end_explains_are_missed(steps: int, hospital: Graph, tmp_path: Path) -> None:
    """Validation could not have stalled so soon: «it ended early» is no excuse for steps that nobody paid for."""
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    settings = {**QUICK, **STEPS, "mechanism": "lazy", "private_optimiser": "sgd", "order": "interleaved"}
    run = train(graph, out=tmp_path / "run", **{**settings, "validate_every": 1, "patience": 6})
    assert verify(run, graph)["valid"]
    with pytest.raises(VerificationError, match="fewer private steps"):
        certify(cut(run, without='"repeated"', more={"steps": steps}))


def test_no_new_run_poses_as_one_whose_facts_were_never_bound(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, everything=True))
    run = train(graph, out=tmp_path / "run", **QUICK)
    path = run.folder / "ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rewrite(path, [{k: v for k, v in line.items() if k != "facts"} for line in lines])
    config = run.folder / "config.yaml"
    config.write_text(
        config.read_text(encoding="utf-8").replace("unit: statement", "unit: head"), encoding="utf-8"
    )
    with pytest.raises(VerificationError, match="what it says of the graph"):
        certify(open_run(run.folder))


def test_figures_of_other_vectors_are_not_shown(hospital: Graph, tmp_path: Path) -> None:
    run = train(hospital, out=tmp_path / "run", **{**QUICK, "epsilon": None, "dimension": 16, "epochs": 20})
    other = train(
        hospital, out=tmp_path / "other", **{**QUICK, "epsilon": None, "dimension": 16, "epochs": 0}
    )
    shown = find(run, graph=hospital).quality
    shutil.copyfile(other.folder / ENTITIES, run.folder / ENTITIES)
    assert shown
    with pytest.raises(VerificationError, match="not what was certified"):
        find(open_run(run.folder), graph=hospital)


@pytest.mark.parametrize("sigma", [0.001, 0.004, 1.0, 1e6])
def test_the_choice_of_select_has_a_price_at_any_noise(sigma: float) -> None:
    event = mechanism_class("select").event(StepTerms(sigma, 0.5, 10.0))
    charged = event["all"][0]["of"]["noise_multiplier"]
    assert 0 < charged < sigma
