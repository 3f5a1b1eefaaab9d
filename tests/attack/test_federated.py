"""Attacks on federations: planted statements, what each attacker sees, and that they find members where nothing is defended."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from veilgraph import registry
from veilgraph.attack.federated import federated, listen
from veilgraph.attack.federated.targets import Targets, plant
from veilgraph.attack.federated.transcript import others
from veilgraph.cli import main
from veilgraph.errors import InputError, UnknownNameError
from veilgraph.federate.divide import divide
from veilgraph.load import Graph, save

TRAINING = {"model": "transe", "dimension": 32, "batch": 128, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def clients(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clients")
    for name, graph in divide(hospital, 3, by="random").items():
        save(graph, folder / name)
    return folder


@pytest.fixture(scope="module")
def heard(clients: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heard") / "f"
    listen(
        clients,
        out=folder,
        victim="client0",
        attacker="client1",
        active=True,
        every=3,
        count=300,
        rounds=12,
        local_epochs=5,
        training=TRAINING,
    )
    return folder


def test_planted_statements_differ_in_membership_alone(hospital: Graph) -> None:
    graphs = divide(hospital, 3, by="random")
    graph, targets = plant(graphs, "client0", "client1", count=100)
    rows = {
        (graph.entities[int(h)], graph.relations[int(r)], graph.entities[int(t)]) for h, r, t in graph.train
    }
    assert len(graph.train) == len(graphs["client0"].train) + 50
    for statement, member in zip(targets.statements, targets.member):
        assert (statement in rows) == member
    assert targets.member.sum() == 50
    assert targets.holders.min() >= 2
    assert targets.holders.max() <= 3
    again = plant(graphs, "client0", "client1", count=100)[1]
    assert again.statements == targets.statements
    for wrong in (("client0", "client0"), ("client0", "nobody")):
        with pytest.raises(InputError):
            plant(graphs, *wrong)
    apart = divide(hospital, 3, by="relation")
    with pytest.raises(InputError, match="by entity"):
        plant(apart, "client0", "client1")


def test_one_share_is_taken_out_exactly() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3, 4, 5)).astype(np.float32)  # clients, entities, width
    for holders in (1, 2, 3):
        mean = rows[:holders].mean(0)
        wanted = rows[1:holders].mean(0) if holders > 1 else np.zeros((4, 5))
        for step in (1.0, 0.5, 2.0):  # how far the server goes towards the mean
            had = rng.normal(size=(4, 5)).astype(np.float32)
            after = (had + step * (mean - had)).astype(np.float32)
            found = others(had, rows[0], after, np.full(4, holders), step)
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("kind", registry.names("attacks"))
def test_undefended_members_are_found(heard: Path, kind: str) -> None:
    found = federated(heard, kind)
    assert {"kind", "round", "auc", "f1", "tpr@fpr=0.01", "members", "non_members"} <= set(found)
    assert found["members"] == found["non_members"] == 150
    assert not found["nothing_sent"]
    low = {"server": 0.6, "passive": 0.55, "active": 0.55, "collusion": 0.6, "published": 0.6}[kind]
    assert found["auc"] > low
    assert found["auc_interval"][0] <= found["auc"] <= found["auc_interval"][1]
    json.dumps(found, allow_nan=False)


def test_every_attacker_needs_only_what_it_sees(heard: Path, tmp_path: Path) -> None:
    wanted = {
        kind: federated(heard, kind)["auc"] for kind in registry.names("attacks") if kind != "published"
    }
    for kept, gone in (("server", "client"), ("client", "server")):
        folder = tmp_path / kept
        shutil.copytree(heard, folder)
        shutil.rmtree(folder / "transcript" / gone)
        shutil.rmtree(folder / "server")
        for kind in ("server",) if kept == "server" else ("passive", "active"):
            assert federated(folder, kind)["auc"] == wanted[kind]
        for kind in ("passive", "active", "collusion") if kept == "server" else ("server", "collusion"):
            with pytest.raises(InputError, match="no round"):
                federated(folder, kind)


def test_where_nothing_is_sent_there_is_no_figure(clients: Path, tmp_path: Path) -> None:
    """Clients that leave everything to counts send nothing: chance would be the answer whatever the defence. Counts are published."""
    terms = {"rounds": 4, "local_epochs": 1, "training": {"model": "transe", "dimension": 8}}
    listen(
        clients, out=tmp_path / "f", victim="client0", attacker="client1", active=True, every=2, count=100,
        own={"epsilon": 200.0}, **terms,
    )  # fmt: skip
    for kind in registry.names("attacks"):
        found = federated(tmp_path / "f", kind)
        json.dumps(found, allow_nan=False)
        if kind == "published":
            assert found["auc_interval"][0] > 0.5  # ε is absurd: what is attacked must be able to tell
        else:
            assert found["nothing_sent"]
            assert found["auc"] is None
            assert "client0 sent nothing" in found["why"]
    assert main(["attack", "federated", str(tmp_path / "f"), "--kind", "passive"]) == 0


def test_rows_that_stay_as_they_were_are_nothing(clients: Path, tmp_path: Path) -> None:
    """A client may take private steps that move no shared row: attackers see what everybody was sent."""
    own = {"epsilon": 50.0, "mechanism": "lazy", "private_parameters": "relations", "prior": "none"}
    terms = {"rounds": 3, "local_epochs": 1, "training": {"model": "distmult", "dimension": 8}}
    listen(
        clients,
        out=tmp_path / "f",
        victim="client0",
        attacker="client1",
        every=1,
        count=100,
        own=own,
        **terms,
    )
    assert "stayed as they were" in federated(tmp_path / "f", "server")["why"]


ENCODER = {
    "model": "distmult",
    "dimension": 8,
    "encoder": "kegcn",
    "encoder_bases": 2,
    "candidates": "sampled",
}
CASES = {
    "fede, larger steps": ({"server_step": 2.0}, {"server", "passive", "active", "collusion", "published"}),
    "fede, trimmed": ({"aggregate": "trimmed"}, {"server", "passive", "active", "collusion", "published"}),
    "fedr": ({"strategy": "fedr"}, {"passive", "active", "collusion", "published"}),
    "alone": ({"strategy": "alone"}, {"server", "collusion", "published"}),
    "fedkegcn": (
        {"strategy": "fedkegcn", "training": ENCODER},
        {"passive", "active", "collusion", "published"},
    ),
    "kegcn-alone": ({"strategy": "kegcn-alone", "training": ENCODER}, {"collusion", "published"}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_strategy_is_attacked(case: str, clients: Path, tmp_path: Path) -> None:
    """Whoever sees something that a statement can be scored by scores it; who sees nothing says why."""
    terms, able = CASES[case]
    settings = {"rounds": 6, "local_epochs": 2, "training": TRAINING, **terms}
    listen(
        clients, out=tmp_path / "f", victim="client0", attacker="client1", active=True, every=2, count=200,
        **settings,
    )  # fmt: skip
    for kind in registry.names("attacks"):
        found = federated(tmp_path / "f", kind)
        assert found["nothing_sent"] == (kind not in able), kind
        assert (found["why"] is None) == (kind in able)
    assert set(registry.names("strategies")) <= {
        str(one.get("strategy", "fede")) for one, _ in CASES.values()
    }


def test_the_truth_does_not_reach_the_scores(heard: Path, tmp_path: Path) -> None:
    """With the labels drawn anew the same scores find nothing."""
    folder = tmp_path / "f"
    shutil.copytree(heard, folder)
    targets = Targets.read(folder)
    shuffled = np.random.default_rng(0).permutation(targets.member)
    replace(targets, member=shuffled).save(folder)
    for kind in registry.names("attacks"):
        assert 0.4 < federated(folder, kind)["auc"] < 0.6


def test_commands_and_errors(clients: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "f")
    words = [
        "federate",
        "run",
        str(clients),
        "--out",
        out,
        "--rounds",
        "3",
        "--local-epochs",
        "1",
        "--model",
        "transe",
    ]
    words += [
        "--dimension",
        "8",
        "--listen",
        "--victim",
        "client2",
        "--attacker",
        "client0",
        "--targets",
        "40",
    ]
    assert main([*words, "--every", "1", "--json"]) == 0
    capsys.readouterr()
    assert main(["attack", "federated", out, "--kind", "passive", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["members"] == 20
    assert main(["attack", "federated", out, "--kind", "server"]) == 0
    assert "chosen" in capsys.readouterr().out
    assert main(["attack", "federated", out, "--kind", "active"]) == 3
    assert "--active" in capsys.readouterr().err
    assert main(["attack", "federated", str(clients)]) == 3
    assert main([*words[:-4], "--victim", "client2"]) == 2
    with pytest.raises(UnknownNameError):
        federated(out, "psychic")
