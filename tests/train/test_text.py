"""Trainings on descriptions: steps against automatic differentiation, resuming, new entities, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from veilgraph.errors import ConfigError, InputError, RunError, UsageError
from veilgraph.load import Graph, load, split
from veilgraph.rank.popularity import popularity
from veilgraph.rng import Streams
from veilgraph.run.predict import DESCRIBED
from veilgraph.train import resume, train
from veilgraph.train.loop import CHECKPOINT_SECONDS
from veilgraph.train.rows.text import TextRows, only_its_own, plain, texts_of
from veilgraph.train.session import Session

QUICK = {"text": "mean", "dimension": 16, "epochs": 2, "negatives": 16, "batch": 256, "threads": 1}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEILGRAPH_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def inductive() -> Graph:
    """A hospital some of whose entities training does not know."""
    return split(load("builtin:hospital", patients=400), valid=0.05, test=0.1, mode="entities")


@pytest.mark.parametrize("mix", ["text", "average", "learnt"])
@pytest.mark.parametrize("model", ["complex", "transe", "transh"])
def test_a_step_follows_the_gradient(mix: str, model: str, hospital: Graph) -> None:
    """With plain steps what is learnt moves by rate · gradient of the mean loss, by automatic differentiation through everything."""
    from veilgraph.train import complete_config
    from veilgraph.train.batches import TripleBatch

    config, _ = complete_config(
        hospital,
        {**QUICK, "model": model, "optimiser": "sgd", "text_mix": mix, "candidates": "sampled", "loss": "softplus",
         "learning_rate": 1.0},
    )  # fmt: skip
    session = Session.open(hospital, config)
    plan, p = session.ordinary_plan(), session.state.parameters
    assert isinstance(session.rows, TextRows)
    batch = next(plan.batches(0))
    assert isinstance(batch, TripleBatch)
    before = {name: tensor.clone() for name, tensor in p.weights.items()}
    ids, _ = only_its_own(batch, len(p.entities))
    drawing = Streams(config.seed).numpy("messages", 0, 1)
    shown = torch.ones(len(p.entities))
    shown[ids] = torch.from_numpy((drawing.random(len(ids)) >= 0.3).astype(np.float32))
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in before.items()}
    with torch.enable_grad():
        rows = session.rows.described.rows(slice(None), leaves, shown)
    found = plan.task.gradients(replace(p, entities=rows.detach()), batch)
    on_rows = torch.zeros_like(rows).index_add_(0, found.entities.ids, found.entities.values)
    gradients = torch.autograd.grad(rows, list(leaves.values()), on_rows, allow_unused=True)
    plan.step(p, session.state.optimisers, batch, 0.5)
    moved = 0
    for (name, old), gradient in zip(before.items(), gradients):
        wanted = old if gradient is None or name == "text.center" else old - 0.5 * gradient
        torch.testing.assert_close(p.weights[name], wanted, atol=1e-5, rtol=1e-4)
        moved += not torch.equal(p.weights[name], old)
    assert moved == {"text": 1, "average": 2, "learnt": 3}[mix]


def test_new_entities_are_ranked_above_chance(inductive: Graph, tmp_path: Path) -> None:
    run = train(inductive, out=tmp_path / "run", **{**QUICK, "epochs": 8, "dimension": 32})
    assert run.config.text_mix == "text", "new entities are to be asked about"
    found = run.evaluate("test")
    ordinary = train(
        inductive, out=tmp_path / "other", model="complex", dimension=32, epochs=8, threads=1
    ).evaluate("test")
    assert found["mrr"] > 1.5 * ordinary["mrr"]
    parts = [found[name] for name in ("new_head", "new_tail", "both_new")]
    assert sum(part["queries"] for part in parts) == found["queries"]
    total = sum(part["mrr"] * part["queries"] for part in parts)
    assert total / found["queries"] == pytest.approx(found["mrr"])
    usual = popularity(inductive)["mrr"]
    assert found["mrr"] > usual, "what knows no description must be beaten"
    assert found["new_end"]["queries"] + found["known_end"]["queries"] == found["queries"]
    assert found["new_end"]["mrr"] < found["known_end"]["mrr"]


def test_resumed_ends_as_if_it_had_not_stopped(hospital: Graph, tmp_path: Path) -> None:
    whole = train(hospital, out=tmp_path / "whole", **QUICK)

    class Stop(Exception):
        pass

    def listener(progress: object) -> None:
        if progress.epoch == 2:  # type: ignore[attr-defined]
            raise Stop

    with pytest.raises(Stop):
        train(hospital, out=tmp_path / "part", listener=listener, checkpoint_seconds=0.0, **QUICK)
    again = resume(tmp_path / "part", graph=hospital, checkpoint_seconds=CHECKPOINT_SECONDS)
    assert torch.equal(again.parameters.entities, whole.parameters.entities)
    assert torch.equal(again.parameters.weights["text.gate"], whole.parameters.weights["text.gate"])


def test_a_described_entity_asks_and_is_ranked(hospital: Graph, tmp_path: Path) -> None:
    run = train(hospital, out=tmp_path / "run", **{**QUICK, "epochs": 6, "text_mix": "text"})
    name = next(n for n in hospital.entities if n.startswith("disease/"))
    words = hospital.descriptions[hospital.entities.id(name)].as_py()
    asked = run.predict(describe=words, relation="belongsTo", top=3)
    known = run.predict(head=name, relation="belongsTo", top=3, known=True)
    assert [a["entity"] for a in asked] == [a["entity"] for a in known]
    assert asked[0]["score"] == pytest.approx(known[0]["score"], rel=1e-3)
    answers = run.predict(tail="specialty/cardiology", relation="belongsTo", describe=words, top=3)
    own = [a for a in answers if a["entity"] == DESCRIBED]
    assert len(own) == 1
    everybody = run.predict(
        tail="specialty/cardiology", relation="belongsTo", describe=words, top=len(hospital.entities) + 1
    )
    assert [a["rank"] for a in everybody if a["entity"] == DESCRIBED] == [own[0]["rank"]]
    heads = run.predict(tail=DESCRIBED, relation="hasDiagnosis", describe=words, top=2)
    assert len(heads) == 2
    with pytest.raises(UsageError, match="give the text too"):
        run.predict(tail=DESCRIBED, relation="hasDiagnosis")
    with pytest.raises(InputError, match="empty"):
        run.predict(describe="  ", relation="hasDiagnosis")


def test_refusals_say_the_remedy(hospital: Graph, tmp_path: Path) -> None:
    bare = Graph(hospital.entities, hospital.relations, hospital.splits)
    for settings, kind, said in (
        ({"text": "mean", "encoder": "kegcn"}, ConfigError, "choose one"),
        ({"text_mix": "text"}, ConfigError, "without text"),
        ({"text": "mean", "averaging": 1.0}, ConfigError, "averaging 0"),
        ({"text": "mean", "model": "marginals"}, ConfigError, "another --model"),
    ):
        with pytest.raises(kind, match=said):
            train(hospital, out=tmp_path / "run", **settings)
    with pytest.raises(InputError, match="--descriptions FILE"):
        train(bare, out=tmp_path / "run", text="mean")
    assert not (tmp_path / "run").exists()
    plainly = train(hospital, out=tmp_path / "plain", model="distmult", dimension=8, epochs=1, threads=1)
    with pytest.raises(RunError, match="Train with --text"):
        plainly.predict(describe="a disease", relation="belongsTo")


def test_an_entity_without_a_description_is_read_by_its_name(hospital: Graph) -> None:
    from veilgraph.config import TrainConfig

    found = texts_of(hospital, TrainConfig())
    assert found[hospital.entities.id("patient/17")] == "patient 17"
    assert plain("http://example.org/drug#acute_pain") == "acute pain"
