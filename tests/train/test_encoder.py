"""Graph convolutions in front of scorers: they learn, go on after a stop, and never see what they are asked about."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from veilgraph import registry
from veilgraph.config import TrainConfig
from veilgraph.errors import ConfigError, PrivacyError
from veilgraph.load import Graph
from veilgraph.models.parameters import Parameters
from veilgraph.train import complete_config, resume, train
from veilgraph.train.rows import GraphRows, Place
from veilgraph.train.rows.graph import BASES, asked_about
from veilgraph.train.session import Session

SMALL = {"dimension": 8, "epochs": 3, "encoder_edges": 400, "threads": 1}


def prepared(graph: Graph, **settings: object) -> tuple[Session, GraphRows]:
    """A training whose steps are as long as they are asked to be, and its rows."""
    given = {"model": "distmult", "encoder": "kegcn", "learning_rate": 1.0, **SMALL, **settings}
    session = Session.open(graph, complete_config(graph, given)[0])
    assert isinstance(session.rows, GraphRows)
    return session, session.rows


@pytest.mark.parametrize("encoder", registry.names("convolutions"))
@pytest.mark.parametrize("model", ["distmult", "rotate"])
def test_every_encoder_goes_with_every_scorer(
    hospital: Graph, tmp_path: Path, encoder: str, model: str
) -> None:
    run = train(hospital, out=tmp_path / "run", model=model, encoder=encoder, **SMALL)
    losses = [line["loss"] for line in run.trace]
    assert losses[-1] < losses[0]
    assert run.evaluate("test")["mrr"] > 0
    assert run.predict(head="patient/1", relation="hasDiagnosis")  # vectors like any other's
    assert any(name.startswith("encoder.") for name in run.parameters.weights)


def test_an_encoder_learns(hospital: Graph, tmp_path: Path) -> None:
    run = train(hospital, out=tmp_path / "run", model="distmult", encoder="kegcn", **{**SMALL, "epochs": 12})
    chance = train(
        hospital, out=tmp_path / "new", model="distmult", encoder="kegcn", **{**SMALL, "epochs": 0}
    )
    assert run.evaluate("test")["mrr"] > 3 * chance.evaluate("test")["mrr"]


def test_a_step_is_the_gradient_of_its_loss(hospital: Graph) -> None:
    """Moved by plain steps, encoder and relations go where automatic differentiation of the whole would send them."""
    session, made = prepared(hospital, candidates="sampled", optimiser="sgd", dropout=0.0, encoder_bases=2)
    plan, p = session.ordinary_plan(), session.state.parameters
    before = {name: tensor.clone() for name, tensor in p.weights.items()}
    batch = next(iter(plan.batches(0)))
    edges = made._messages(batch, Place(0, 1))
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in before.items()}
    with torch.enable_grad():
        torch.manual_seed(int(session.streams.numpy("messages", 0, 1, 1).integers(2**31)))
        rows = made.encode(leaves, edges)
    found = plan.task.gradients(Parameters(rows.detach(), p.relations, {}), batch)
    assert found.entities.ids is not None
    with torch.enable_grad():
        wanted = torch.autograd.grad(
            (rows[found.entities.ids] * found.entities.values).sum(), list(leaves.values()), allow_unused=True
        )
    plan.step(p, session.state.optimisers, batch, 0.1)
    for (name, old), gradient in zip(before.items(), wanted):
        moved = old - 0.1 * gradient if gradient is not None else old
        torch.testing.assert_close(p.weights[name], moved, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("candidates", ["sampled", "all"])
def test_what_is_asked_about_carries_no_message(hospital: Graph, candidates: str) -> None:
    loss = {"loss": "softmax"}
    session, made = prepared(hospital, candidates=candidates, encoder_edges=10**6, **loss)
    known = set(hospital.keys(hospital.train).tolist())
    for batch in itertools.islice(session.ordinary_plan().batches(0), 3):
        asked = hospital.keys(asked_about(batch, len(hospital.relations)))
        assert set(asked.tolist()) <= known  # they are statements, the right way round
        edges = made._messages(batch, Place(0, 1))
        sent = torch.stack([edges.head, edges.relation, edges.tail], 1).numpy()
        assert not np.isin(hospital.keys(sent), asked).any()
        assert len(edges) == len(hospital.train) - len(np.unique(asked))


def test_a_stopped_training_ends_as_if_it_had_not_been(hospital: Graph, tmp_path: Path) -> None:
    settings = {"model": "distmult", "encoder": "kegcn", "encoder_bases": 2, **SMALL}
    whole = train(hospital, out=tmp_path / "whole", **settings)

    class Stop(Exception):
        pass

    def stop(progress: object) -> None:
        if getattr(progress, "epoch", 0) == 2:
            raise Stop

    with pytest.raises(Stop):
        train(hospital, out=tmp_path / "part", listener=stop, checkpoint_seconds=0, **settings)
    again = resume(tmp_path / "part", graph=hospital)
    torch.testing.assert_close(again.parameters.entities, whole.parameters.entities, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(
        again.parameters.weights[BASES], whole.parameters.weights[BASES], atol=1e-5, rtol=1e-4
    )


def test_transport_draws_bases_to_the_federations(hospital: Graph) -> None:
    distances = {}
    for weight in (0.0, 100.0):
        session, made = prepared(hospital, encoder_bases=2, transport="sorted", transport_weight=weight)
        plan, state = session.ordinary_plan(), session.state
        start = state.parameters.weights[BASES]
        made.anchor = torch.full_like(start, 1.0)
        for batch in itertools.islice(plan.batches(0), 20):
            plan.step(state.parameters, state.optimisers, batch, 0.02)
        distances[weight] = float(made._distance(state.parameters.weights[BASES]).detach())
    assert distances[100.0] < 0.8 * distances[0.0]


def test_an_encoder_promises_nothing(hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="encoder"):
        train(hospital, out=tmp_path / "run", encoder="kegcn", epsilon=1.0)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"encoder": "moon"},
        {"encoder": "rgcn", "encoder_score": "rotate"},
        {"encoder": "kegcn", "encoder_score": "moon"},
    ],
)
def test_wrong_encoders_are_explained(hospital: Graph, tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r"encoder|score"):
        train(hospital, out=tmp_path / "run", model="distmult", **{**SMALL, **wrong})


def test_open_settings_leave_older_runs_as_they_are() -> None:
    assert TrainConfig.of({"model": "distmult"}).encoder is None
    with pytest.raises(ConfigError):
        TrainConfig.of({"encoder_layers": 0})
