"""Noise that falls in stages: each step has the noise, and the charge, of its own stage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.ledgers import rewrite
from tests.privacy import private_run
from tests.privacy.meters import OpenMeter, whole
from veilgraph.account.prices import STAGES, Stages, StepTerms
from veilgraph.files import write_json
from veilgraph.layout import CERTIFICATE
from veilgraph.load import Graph
from veilgraph.mark import mark
from veilgraph.models.parameters import Parameters
from veilgraph.noise import gauss
from veilgraph.run.run import Run
from veilgraph.run.verify import _build, verify
from veilgraph.train.gradients import RowGradient
from veilgraph.train.mechanisms import Step, mechanism_class
from veilgraph.train.optim import create
from veilgraph.train.private.clip import Clip, ClippedSum


@given(st.integers(1, 200), st.floats(0.01, 1.0), st.integers(0, 200), st.integers(0, 200))
def test_stages_part_the_steps(steps: int, decay: float, first: int, last: int) -> None:
    """Whatever part is asked for, every step is in it once, with its own factor."""
    stages, last = Stages(steps, decay), min(last, steps)
    found = [factor for count, factor in stages.parts(first, last) for _ in range(count)]
    assert found == [stages.factor(number) for number in range(first, last)]
    whole = [stages.factor(number) for number in range(steps)]
    assert whole[0] == 1.0
    assert whole == sorted(whole, reverse=True)
    assert len(set(whole)) <= STAGES
    if steps >= STAGES:
        assert whole[-1] == pytest.approx(decay, abs=1e-6)


@pytest.mark.parametrize("name", ["dense", "lazy"])
def test_a_step_has_the_noise_of_its_stage(name: str) -> None:
    """Steps with shares 1, ½ and ¼ of the noise: the variances add up. (40,000 numbers: 5 σ is 3.5 %.)"""
    terms, shape = StepTerms(2.0, 0.5, 4.0, entities=2000), (2000, 20)
    clip = Clip(1.0, True, False, torch.empty(0, dtype=torch.int64))
    mechanism = mechanism_class(name)(terms, clip, OpenMeter(gauss.source(insecure_seed=3)))
    p = Parameters(torch.zeros(shape), torch.zeros(1, 20))
    empty = RowGradient(torch.empty(0, dtype=torch.int64), torch.empty(0, 20, dtype=torch.float64))
    optimisers = {"entities": create("sgd", p.entities)}
    for factor in (1.0, 0.5, 0.25):
        mechanism.factor = factor
        mechanism.into(p, 0.1)
        total = ClippedSum(empty, None, 1.0, 0.0, torch.empty(0), None)
        mechanism.release(p, optimisers, Step(total, torch.empty(0, dtype=torch.int64), 0.1, whole()))
    mechanism.flush(p)
    wanted = 0.1 * 2.0 / 4.0 * np.sqrt(1 + 0.25 + 0.0625)
    assert float(p.entities.std()) == pytest.approx(wanted, rel=0.035)


@pytest.mark.parametrize("mechanism", ["lazy", "adafest"])
def test_every_stage_is_charged_with_its_own_noise(mechanism: str, hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    settings = {"mechanism": mechanism, "noise_decay": 0.5, "private_steps": 16, "prior": "none"}
    optimiser = "sgd" if mechanism == "lazy" else "row-adagrad"
    run = private_run(graph, tmp_path / "run", private_optimiser=optimiser, **settings)
    assert run.epsilon is not None
    assert 1.9 < run.epsilon <= 2.0  # all of the budget, and no more
    paid: dict[str, int] = {}
    for event in run.ledger.events:
        if event["event"] == "repeated":
            key = json.dumps(event["of"])
            paid[key] = paid.get(key, 0) + event["times"]
    assert len(paid) == STAGES
    assert set(paid.values()) == {2}
    assert verify(run, graph)["valid"]


def test_a_stage_that_was_paid_too_cheaply_is_found(hospital: Graph, tmp_path: Path) -> None:
    """The last steps at the first stage's price: as many steps, less ε."""
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    run = private_run(graph, tmp_path / "run", noise_decay=0.5, private_steps=16, prior="none")
    path = run.folder / "ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    charges = [line for line in lines if line["charge"]["event"] == "repeated"]
    for line in charges:
        line["charge"]["of"] = charges[0]["charge"]["of"]
    rewrite(path, lines)
    found = verify(run, graph)
    assert not found["valid"]


@pytest.mark.slow
def test_a_federation_pays_round_by_round_for_falling_noise(hospital: Graph, tmp_path: Path) -> None:
    pytest.importorskip("flwr")
    from veilgraph.federate import federate
    from veilgraph.federate.divide import divide
    from veilgraph.load import save

    for name, part in divide(hospital, 2, by="random").items():
        save(part, tmp_path / "clients" / name)
    own = {"epsilon": 4.0, "mechanism": "lazy", "noise_decay": 0.5, "private_steps": 12, "sample_rate": 0.5}
    training = {"model": "distmult", "dimension": 8, "candidates": "sampled"}
    found = federate(
        tmp_path / "clients", out=tmp_path / "f", own=own, rounds=3, local_epochs=1, training=training
    )
    for one in found["clients"]:
        assert one["epsilon"] is not None
        assert one["epsilon"] <= 4
        assert verify(Run.open(tmp_path / "f" / "clients" / one["name"]))["valid"]


def _rewritten(run: Run, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    path = run.folder / "ledger.jsonl"
    lines = change([json.loads(line) for line in path.read_text().splitlines()])
    rewrite(path, lines)


def test_stages_of_one_price_are_paid_for_one_by_one(hospital: Graph, tmp_path: Path) -> None:
    """With hardly any decay all stages cost the same: one payment does not do for all of them."""
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    run = private_run(graph, tmp_path / "run", noise_decay=1 - 1e-12, private_steps=16, prior="none")
    assert verify(run, graph)["valid"]
    steps = lambda line: line["charge"]["event"] == "repeated"  # noqa: E731

    def fewer(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        first = next(line for line in lines if steps(line))
        first["charge"]["times"] = 2
        return [line for line in lines if not steps(line) or line is first]

    _rewritten(run, fewer)
    certify_anyway(run)
    assert "fewer private steps" in " ".join(verify(run, graph)["reasons"])


def test_a_training_that_says_its_rounds_are_over_must_have_had_some(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    run = private_run(graph, tmp_path / "run", private_steps=16, prior="none")

    def none(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [line for line in lines if line["charge"]["event"] != "repeated"]
        return [*kept, {"what": "rounds are over", "steps": 0, "charge": {"event": "nothing"}}]

    _rewritten(run, none)
    certify_anyway(run)
    assert "fewer private steps" in " ".join(verify(run, graph)["reasons"])


def certify_anyway(run: Run) -> None:
    """A certificate that fits the ledger as it is, whatever the ledger leaves out."""
    write_json(run.folder / CERTIFICATE, _build(run))


def test_a_small_variance_does_not_vanish_beside_a_large_sum() -> None:
    clip = Clip(1.0, True, False, torch.empty(0, dtype=torch.int64))
    meter = OpenMeter(gauss.source(insecure_seed=0))
    lazy = mechanism_class("lazy")(StepTerms(1.0, 0.5, 1.0, entities=3), clip, meter)
    lazy.owed.variance, lazy.factor = 1000.0, 0.01  # type: ignore[attr-defined]
    total = ClippedSum(None, None, 1.0, 0.0, torch.empty(0), None)
    step = Step(total, torch.empty(0), 2**-17, whole())
    lazy.release(Parameters(torch.zeros(3, 2), torch.zeros(1, 2)), {}, step)
    assert lazy.owed.variance - 1000.0 >= (0.01 * 2**-17) ** 2


def test_a_client_that_paid_twice_is_certified(hospital: Graph, tmp_path: Path) -> None:
    """A crash after a round was paid for: it is paid again, the rounds end early, and the certificate holds."""
    pytest.importorskip("flwr")
    from veilgraph.federate.member import Member
    from veilgraph.federate.terms import Terms as Agreed

    training = {"model": "distmult", "dimension": 8, "candidates": "sampled"}
    terms = Agreed(rounds=4, local_epochs=1, training=training)
    own = {
        "noise_multiplier": 3.0,
        "mechanism": "lazy",
        "noise_decay": 0.5,
        "private_steps": 16,
        "sample_rate": 0.5,
    }
    member = Member.join(tmp_path / "m", hospital, terms, bytes(32), own)
    member.plan.pay(0, 1)  # and then it dies
    member = Member.join(tmp_path / "m", hospital, terms, bytes(32), None)
    rows = member.rows()
    for number in (1, 2):
        rows = member.train(number, rows)
    member.finish(rows)
    assert verify(member.run, hospital)["valid"]
