"""Section 4 of the contract: what is charged, when, and that it cannot be edited."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.ledgers import rewrite
from tests.privacy import QUICK, private_run
from veilgraph.account.ledger import Ledger
from veilgraph.errors import BudgetError, PrivacyError, RunError, VerificationError
from veilgraph.files import as_json, read_tensors
from veilgraph.load import Graph, save
from veilgraph.mark import mark
from veilgraph.run.facts import bind
from veilgraph.run.run import Run
from veilgraph.run.verify import _build, certify, verify
from veilgraph.train import resume, train
from veilgraph.train.loop import Progress


def test_counts_are_drawn_once(hospital: Graph, tmp_path: Path) -> None:
    """Whoever could have them drawn again and again would have their mean, for the price of once."""
    with pytest.raises(Stop):
        stopped(hospital, tmp_path / "run", prior="marginals")
    before = read_tensors(tmp_path / "run" / "marginals.safetensors")[0]
    resume(tmp_path / "run", graph=hospital)
    after = read_tensors(tmp_path / "run" / "marginals.safetensors")[0]
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_insecure_noise_seed_costs_the_guarantee(hospital: Graph, tmp_path: Path) -> None:
    runs = [private_run(hospital, tmp_path / name, insecure_noise_seed=3) for name in ("one", "two")]
    assert torch.equal(runs[0].parameters.entities, runs[1].parameters.entities)
    assert (runs[0].guarantee, runs[0].epsilon) == ("none", None)


def test_charges_come_before_noise(hospital: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every private step the ledger on disk already pays for it."""
    from veilgraph.train.private.plan import PrivatePlan

    taken = 0
    real = PrivatePlan.take

    def spy(self: PrivatePlan, *given: object) -> float:
        nonlocal taken
        taken += 1
        paid = sum(e["times"] for e in Ledger(self.ledger.path).events if e["event"] == "repeated")
        assert paid >= taken
        return real(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(PrivatePlan, "take", spy)
    private_run(hospital, tmp_path / "run")
    assert taken == QUICK["private_steps"]


def test_training_stops_before_the_budget_is_exceeded(hospital: Graph, tmp_path: Path) -> None:
    """With noise fixed by hand and too many steps wanted, steps are left out, not overspent."""
    run = private_run(hospital, tmp_path / "run", noise_multiplier=4.0, epsilon=3.0, private_steps=40)
    assert run.epsilon is not None
    assert run.epsilon <= 3.0
    taken = sum(e["times"] for e in run.ledger.events if e["event"] == "repeated")
    assert 0 < taken < 40


@pytest.mark.parametrize(
    "name",
    [
        "ledger.jsonl",
        "certificate.json",
        "entities.safetensors",
        "relations.safetensors",
        "config.yaml",
        "vocabulary.parquet",
    ],
)
def test_any_edit_fails_verification(name: str, hospital: Graph, tmp_path: Path) -> None:
    marked = hospital.with_marks(mark(hospital, everything=True))
    run = private_run(marked, tmp_path / "run")
    assert verify(run, marked)["valid"]
    path = run.folder / name
    data = bytearray(path.read_bytes())
    if name.endswith((".jsonl", ".json", ".yaml")):
        text = data.decode()
        edited = text.replace("100.0", "200.0") if "jsonl" in name else text.replace("2", "3", 1)
        assert edited != text
        path.write_text(edited, encoding="utf-8")
    else:
        data[-5] ^= 1
        path.write_bytes(data)
    assert not verify(Run.open(run.folder), marked)["valid"]


def test_edited_marks_fail_verification(hospital: Graph, tmp_path: Path) -> None:
    marked = hospital.with_marks(mark(hospital, relations=["has*"]))
    run = private_run(marked, tmp_path / "run")
    assert verify(run, marked)["valid"]
    fewer = hospital.with_marks(mark(hospital, relations=["hasDiagnosis"]))
    assert "marks" in " ".join(verify(run, fewer)["reasons"])


def test_forged_epsilon_with_a_fresh_seal_fails(hospital: Graph, tmp_path: Path) -> None:
    from veilgraph.account.certificate import seal

    run = private_run(hospital, tmp_path / "run")
    document = run.certificate
    document["epsilon"] = 0.1
    document["seal"] = seal(document)
    (run.folder / "certificate.json").write_text(json.dumps(document), encoding="utf-8")
    assert any(
        reason.startswith("epsilon")
        for reason in verify(run, hospital.with_marks(mark(hospital, everything=True)))["reasons"]
    )


# --- ways around the ledger that a reviewer found -------------------------------------------------------------------
class Stop(Exception):
    """Raised in the middle of a training."""


def stopped(graph: Graph, out: Path, **settings: object) -> None:
    def stop(progress: Progress) -> None:
        if progress.step >= 6:
            raise Stop

    private_run(graph, out, listener=stop, checkpoint_seconds=0, private_steps=40, epochs=1, **settings)


def interrupted(graph: Graph, out: Path) -> None:
    with pytest.raises(Stop):
        stopped(graph, out)


@pytest.mark.parametrize("cut", ["gone", "shorter"])
def test_resume_refuses_a_ledger_that_was_cut_back(cut: str, hospital: Graph, tmp_path: Path) -> None:
    interrupted(hospital, tmp_path / "run")
    path = tmp_path / "run" / "ledger.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if cut == "gone":
        path.unlink()
    else:
        rewrite(path, lines[:-1])
    with pytest.raises(VerificationError):
        resume(tmp_path / "run", graph=hospital)


def test_resume_refuses_changed_settings_and_unknown_graphs(hospital: Graph, tmp_path: Path) -> None:
    interrupted(hospital, tmp_path / "run")
    path = tmp_path / "run" / "config.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("insecure_noise_seed: null", "insecure_noise_seed: 1"), encoding="utf-8")
    with pytest.raises(RunError, match="was changed"):
        resume(tmp_path / "run", graph=hospital)
    path.write_text(text, encoding="utf-8")
    (tmp_path / "run" / "curator.json").rename(tmp_path / "curator.json")
    with pytest.raises(RunError, match=r"no curator\.json"):
        resume(tmp_path / "run", graph=hospital)
    (tmp_path / "curator.json").rename(tmp_path / "run" / "curator.json")
    run = resume(tmp_path / "run", graph=hospital)
    assert run.epsilon is not None
    assert run.epsilon <= 2.0


def test_checkpoint_holds_no_confidential_loss(hospital: Graph, tmp_path: Path) -> None:
    interrupted(hospital, tmp_path / "run")
    state = json.loads(read_tensors(tmp_path / "run" / "checkpoint.safetensors")[1]["state"])
    assert state["loss"] == 0.0


def test_blocks_of_charges_follow_a_public_schedule(hospital: Graph, tmp_path: Path) -> None:
    runs = [private_run(hospital, tmp_path / name, private_steps=60) for name in ("one", "two")]
    blocks = [[e["times"] for e in run.ledger.events if e["event"] == "repeated"] for run in runs]
    assert blocks[0] == blocks[1]
    assert sum(blocks[0]) == 60


def without(run: Run, words: str, keep: int = 0) -> None:
    """The run's ledger without the lines that have these words (but the first few of them), certified again if it can be."""
    path = run.folder / "ledger.jsonl"
    lines, met = [], 0
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        met += words in line
        if words not in line or met <= keep:
            lines.append(line)
    rewrite(path, lines)
    with pytest.raises(VerificationError, match="cannot be certified"):
        certify(Run.open(run.folder))
    document = _build(Run.open(run.folder))  # somebody who writes a certificate by hand
    (run.folder / "certificate.json").write_text(as_json(document), encoding="utf-8")


@pytest.mark.parametrize("left_out", ["noisy marginals", "private steps", "noisy number"])
def test_a_charge_cannot_be_left_out_and_certified_again(
    left_out: str, hospital: Graph, tmp_path: Path
) -> None:
    run = private_run(hospital, tmp_path / "run", prior="marginals")
    without(run, left_out)
    assert not verify(Run.open(run.folder))["valid"]


def test_counts_stay_paid_for_when_their_file_is_gone(hospital: Graph, tmp_path: Path) -> None:
    """The vectors of a run without steps are made from the counts: deleting the counts does not undo that."""
    run = train(hospital, out=tmp_path / "run", model="complex", dimension=8, epsilon=1.0, threads=1)
    (run.folder / "marginals.safetensors").unlink()
    without(run, "noisy marginals")
    assert not verify(Run.open(run.folder))["valid"]


def test_fewer_steps_than_were_taken_are_not_believed(hospital: Graph, tmp_path: Path) -> None:
    run = private_run(hospital, tmp_path / "run")
    assert len([line for line in run.ledger.lines if "private steps" in line["what"]]) > 1
    without(run, "private steps", keep=1)
    assert any("fewer" in reason for reason in verify(Run.open(run.folder))["reasons"])


def test_junk_behind_the_ledger_fails(hospital: Graph, tmp_path: Path) -> None:
    run = private_run(hospital, tmp_path / "run")
    with (run.folder / "ledger.jsonl").open("a", encoding="utf-8") as file:
        file.write("junk")
    assert not verify(Run.open(run.folder))["valid"]


def test_counts_lost_in_a_crash_are_drawn_again_under_their_charge(
    hospital: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was released: one charge, one release. Once they were written, a missing file is refused."""
    from veilgraph.train import priors

    def crash(*given: object) -> None:
        raise Stop

    monkeypatch.setattr(priors, "write_tensors", crash)
    with pytest.raises(Stop):
        train(hospital, out=tmp_path / "run", model="marginals", epsilon=1.0, threads=1)
    monkeypatch.undo()
    run = resume(tmp_path / "run", graph=hospital)
    assert [line["what"] for line in run.ledger.lines].count("noisy marginals") == 1
    assert verify(run)["valid"]
    with pytest.raises(Stop):
        stopped(hospital, tmp_path / "other", prior="marginals")
    (tmp_path / "other" / "marginals.safetensors").rename(tmp_path / "kept")
    with pytest.raises(VerificationError, match="is gone"):
        resume(tmp_path / "other", graph=hospital)
    (tmp_path / "kept").rename(tmp_path / "other" / "marginals.safetensors")
    resume(tmp_path / "other", graph=hospital)
    for name in ("marginals", "entities", "relations"):  # a finished run does not draw them again either
        (run.folder / f"{name}.safetensors").unlink()
    with pytest.raises(RunError, match="vectors are gone"):
        resume(run.folder, graph=hospital)


def test_the_charge_of_another_release_does_not_pay_for_counts(hospital: Graph, tmp_path: Path) -> None:
    """The noisy number of units costs next to nothing, and so do very noisy counts; each has its own line."""
    run = train(hospital, out=tmp_path / "run", model="marginals", epsilon=1.0, prior_noise=150.0, threads=1)
    without(run, "noisy marginals")
    assert not verify(Run.open(run.folder))["valid"]


def test_a_run_without_its_certificate_is_certified_on_resume(hospital: Graph, tmp_path: Path) -> None:
    run = private_run(hospital, tmp_path / "run")
    (run.folder / "certificate.json").unlink()
    assert verify(resume(run.folder, graph=hospital))["valid"]


def test_added_words_in_a_certificate_fail(hospital: Graph, tmp_path: Path) -> None:
    from veilgraph.account.certificate import seal

    run = private_run(hospital, tmp_path / "run")
    document = {**run.certificate, "approved_by": "somebody"}
    document["seal"] = seal(document)
    (run.folder / "certificate.json").write_text(as_json(document), encoding="utf-8")
    assert not verify(run)["valid"]


def test_budget_holds_for_the_prior_too(hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="beyond the budget"):
        train(hospital, out=tmp_path / "run", model="marginals", epsilon=1.0, prior_noise=0.2, threads=1)


def test_dropping_needs_marks(hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="nothing is marked"):
        train(hospital, out=tmp_path / "run", model="distmult", drop_confidential=True, epochs=1)


def test_saved_unmarked_graph_is_found_again(hospital: Graph, tmp_path: Path) -> None:
    save(hospital, tmp_path / "graph")
    run = train(tmp_path / "graph", out=tmp_path / "run", model="distmult", epsilon=2.0, **QUICK)
    opened = Run.open(run.folder)
    assert verify(opened)["valid"]
    h, r, t = hospital.train[0]
    (run.folder / "curator.json").unlink()  # as published
    answers = opened.predict(hospital.entities[h], hospital.relations[r], top=len(hospital.entities))
    assert hospital.entities[t] in {answer["entity"] for answer in answers}


def test_unrestricted_first_takes_all_its_steps(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, random_share=0.5))
    run = private_run(graph, tmp_path / "run", order="unrestricted-first", private_steps=10, epochs=4)
    assert sum(e["times"] for e in run.ledger.events if e["event"] == "repeated") == 10
    assert run.trace[-1]["steps"] >= 10


# --- a promise about somebody else ---------------------------------------------------------------------------------
FORGED = {
    "unit": ("unit: statement", "unit: head"),
    "per_unit": ("per_unit: 1", "per_unit: 9"),
    "may_be_confidential": ("- hasDiagnosis\n", ""),
    "decided_from": ("decided_from: []", "decided_from: ['nothing that matters']"),
    "units": ("units: ", "units: 9"),
}


@pytest.mark.parametrize("fact", FORGED)
def test_a_promise_cannot_be_changed_between_a_kill_and_its_end(
    fact: str, hospital: Graph, tmp_path: Path
) -> None:
    """The certificate would speak of patients where statements were counted: every fact is on the ledger before the first step."""
    clean = replace(hospital, extra={})
    graph = clean.with_marks(mark(clean, relations=["hasDiagnosis", "takes"]))
    interrupted(graph, tmp_path / "run")
    path = tmp_path / "run" / "config.yaml"
    text = path.read_text(encoding="utf-8")
    was, said = FORGED[fact]
    assert was in text
    path.write_text(text.replace(was, said, 1), encoding="utf-8")
    with pytest.raises(RunError, match="was changed"):
        resume(tmp_path / "run", graph=graph)
    path.write_text(text, encoding="utf-8")
    run = resume(tmp_path / "run", graph=graph)
    assert verify(run, graph)["valid"]
    path.write_text(text.replace(was, said, 1), encoding="utf-8")
    forged = Run.open(run.folder)
    with pytest.raises(VerificationError):
        certify(forged, graph)
    (run.folder / "certificate.json").write_text(as_json(_build(forged)), encoding="utf-8")
    assert not verify(forged)["valid"]


def test_facts_are_compared_with_the_marks(hospital: Graph, tmp_path: Path) -> None:
    """Somebody who writes facts, ledger and certificate anew still has the graph against him."""
    graph = hospital.with_marks(mark(hospital, relations=["hasDiagnosis"]))
    run = private_run(graph, tmp_path / "run")
    forged = replace(run, facts={**run.facts, "unit": "head"}, held=graph)
    lines = [line for line in run.ledger.lines if "facts" not in line]
    rewrite(run.folder / "ledger.jsonl", lines)
    bind(forged.ledger, run.config, forged.facts)
    with pytest.raises(VerificationError, match="by the marks of the graph"):
        certify(forged, graph)
    (run.folder / "certificate.json").write_text(as_json(_build(forged)), encoding="utf-8")
    assert "by the marks of the graph" in " ".join(verify(forged, graph)["reasons"])


def test_a_run_that_stops_early_is_certified_for_what_it_paid(hospital: Graph, tmp_path: Path) -> None:
    """Validation on unrestricted statements stalls, which is public: fewer steps were taken, and charged."""
    graph = hospital.with_marks(mark(hospital, relations=["hasDiagnosis"]))
    settings = {
        "order": "interleaved",
        "mechanism": "lazy",
        "prior": "none",
        "epochs": 60,
        "private_steps": 120,
    }
    run = private_run(graph, tmp_path / "run", **settings, validate_every=1, patience=1)
    taken = sum(event["times"] for event in run.ledger.events if event["event"] == "repeated")
    assert len(run.trace) < 60
    assert 2 * len(run.trace) <= taken < 120
    assert verify(run, graph)["valid"]
    path = run.folder / "ledger.jsonl"
    fewer = [line for line in path.read_text().splitlines(keepends=True) if "private steps" not in line]
    rewrite(path, fewer)
    with pytest.raises(VerificationError, match="fewer private steps"):
        certify(Run.open(run.folder))
