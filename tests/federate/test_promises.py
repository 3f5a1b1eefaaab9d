"""What clients of a federation promise, whatever server and other clients do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Message

from tests.federate.federation import TRAINING, Federation
from veilgraph.cli import main
from veilgraph.errors import InputError, RunError
from veilgraph.federate import federate, messages
from veilgraph.federate.coordinator import Coordinator, Refused
from veilgraph.federate.member import Member
from veilgraph.federate.messages import pack
from veilgraph.federate.names import tokens
from veilgraph.run.run import Run
from veilgraph.run.verify import verify


def test_private_clients_promise_what_they_were_asked_to(clients: Path, tmp_path: Path) -> None:
    own = {"epsilon": 4.0, "delta": 1e-5, "mechanism": "lazy"}
    found = federate(clients, out=tmp_path / "f", own=own, rounds=3, local_epochs=2, training=TRAINING)
    for one in found["clients"]:
        assert one["guarantee"] == "dp"
        assert 0 < one["epsilon"] <= 4
        run = Run.open(tmp_path / "f" / "clients" / one["name"])
        assert verify(run)["valid"]
        paid = [event for event in run.ledger.events if event["event"] == "repeated"]
        assert len(paid) == 3  # once a round, and nothing that was not taken
        assert sum(int(event["times"]) for event in paid) == run.config.private_steps


def test_a_client_whose_budget_is_spent_stops_and_the_others_go_on(clients: Path, tmp_path: Path) -> None:
    federation = Federation(clients, tmp_path / "f", rounds=4)
    own = {
        "epsilon": 2.0,
        "delta": 1e-5,
        "mechanism": "lazy",
        "private_steps": 8,
        "sample_rate": 0.2,
        "prior": "none",
    }
    federation.nodes[0]["own"] = json.dumps(own | {"noise_multiplier": 1.2})
    federation.run()
    came = [line["came"] for line in federation.trace]
    assert "client0" in came[0]
    assert came[-1] == ["client1", "client2"]
    assert federation.trace[-1]["spent"] == ["client0"]
    run = Run.open(tmp_path / "f" / "client0")
    assert run.epsilon is not None
    assert run.epsilon <= 2.0


def test_figures_of_private_clients_stay_with_them(clients: Path, tmp_path: Path) -> None:
    federation = Federation(clients, tmp_path / "f")
    federation.nodes[0]["own"] = json.dumps({"epsilon": 4.0, "mechanism": "lazy"})
    server = federation.run()
    assert set(server.told["client0"]) == {"status"}
    assert "mrr.shared" in server.told["client1"]
    assert (tmp_path / "f" / "client0" / "metrics.json").is_file()


def test_a_kill_loses_no_spent_budget(clients: Path, tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def kill(message: Message, reply: Message, name: str) -> Message:
        if message.metadata.message_type == "train" and message.metadata.group_id == "2":
            raise Killed
        return reply

    federation = Federation(clients, tmp_path / "f", kill)
    for node in federation.nodes:
        node["own"] = json.dumps({"epsilon": 4.0, "delta": 1e-5, "mechanism": "lazy"})
    with pytest.raises(Killed):
        federation.run()
    paid = Run.open(tmp_path / "f" / "client0").ledger.events
    federation.change = None
    federation.run()
    run = Run.open(tmp_path / "f" / "client0")
    assert run.ledger.events[: len(paid)] == paid
    assert run.epsilon is not None
    assert run.epsilon <= 4
    assert verify(run)["valid"]


def test_a_server_cannot_read_names_from_the_order_of_tokens(clients: Path, tmp_path: Path) -> None:
    federation = Federation(clients, tmp_path / "f")
    node = federation.nodes[0]
    member = Member.join(node["folder"], node["graph"], federation.terms, b"s" * 32, {})
    assert [bytes(one) for one in member.tokens] == sorted(bytes(one) for one in member.tokens)
    named = tokens(list(member.run.entities), b"s" * 32)
    assert np.array_equal(member.tokens[member.places(np.arange(len(named)))], named)
    rows = np.arange(member.rows().size, dtype=np.float32).reshape(member.rows().shape)
    member.take(rows)
    assert np.array_equal(member.rows(), rows)


def test_a_finished_client_stays_as_it_is(clients: Path, tmp_path: Path) -> None:
    federation = Federation(clients, tmp_path / "f")
    federation.run()
    before = {
        one.name: (one.parent / one.name / "relations.safetensors").read_bytes()
        for one in (tmp_path / "f").glob("client*")
    }
    figures = (tmp_path / "f" / "client0" / "metrics.json").read_bytes()
    federation.run()
    for name, rows in before.items():
        assert (tmp_path / "f" / name / "relations.safetensors").read_bytes() == rows
    assert (tmp_path / "f" / "client0" / "metrics.json").read_bytes() == figures
    node = federation.nodes[0]
    member = Member.open(node["folder"], node["graph"], (tmp_path / "f" / "secret").read_bytes().strip())
    assert member.train(4, member.rows()) is None


def test_a_promise_does_not_change(clients: Path, tmp_path: Path) -> None:
    federation = Federation(clients, tmp_path / "f")
    node, terms = federation.nodes[0], federation.terms
    own = {"epsilon": 4.0, "mechanism": "lazy"}
    Member.join(node["folder"], node["graph"], terms, b"s" * 32, own)
    Member.join(node["folder"], node["graph"], terms, b"s" * 32, own)
    for other in ({}, own | {"epsilon": 1.0}):
        with pytest.raises(RunError, match="does not change"):
            Member.join(node["folder"], node["graph"], terms, b"s" * 32, other)
    (Path(node["folder"]) / "member.json").unlink()  # a kill right after the folder was made
    Member.join(node["folder"], node["graph"], terms, b"s" * 32, own)


def test_rows_no_training_makes_are_refused(clients: Path, tmp_path: Path) -> None:
    federation = Federation(clients, tmp_path / "f")
    node = federation.nodes[0]
    member = Member.join(node["folder"], node["graph"], federation.terms, b"s" * 32, {})
    for value in (np.nan, np.inf, 1e7):
        rows = member.rows()
        rows[0, 0] = value
        with pytest.raises(InputError, match="numbers up to"):
            member.take(rows)
    with pytest.raises(InputError, match="expected"):
        member.take(member.rows()[1:])


def test_a_histogram_for_the_clip_norm_is_within_the_budget(clients: Path, tmp_path: Path) -> None:
    own = {"epsilon": 2.0, "delta": 1e-5, "mechanism": "lazy", "clip_quantile": 0.5, "noise_multiplier": 6.0}
    own |= {"private_steps": 400, "sample_rate": 0.5, "prior": "none"}
    found = federate(clients, out=tmp_path / "f", own=own, rounds=1, local_epochs=1, training=TRAINING)
    assert all(0 < one["epsilon"] <= 2 for one in found["clients"])


def test_a_name_belongs_to_its_node(clients: Path, tmp_path: Path) -> None:
    federation = Federation(clients, tmp_path / "f", rounds=1)
    federation.run()
    again = Coordinator.resume(federation.terms, tmp_path / "f" / "server")
    assert again is not None
    own = again.tokens[again.seats["client0"].places]
    again.check_again("client0", own, 2)
    with pytest.raises(Refused, match="another node"):
        again.check_again("client0", own, 3)


@pytest.mark.parametrize("kind", ["evaluate", "query.finish"])
def test_hostile_figures_do_not_stop_the_server(clients: Path, tmp_path: Path, kind: str) -> None:
    def lie(message: Message, reply: Message, name: str) -> Message:
        if message.metadata.message_type != kind or name != "client1":
            return reply
        lies = {"evaluate": {"status": "validated", "mrr": 0.5}}
        said = lies.get(kind, {"status": "finished", "mrr.shared": b"x", "mrr.fede": 7.0, "more": "y" * 10})
        return Message(pack({}, **said), reply_to=message)

    federation = Federation(clients, tmp_path / "f", lie, validate_every=1)
    server = federation.run()
    json.dumps(server.told)
    if kind == "query.finish":
        assert server.told["client1"] == {"status": "finished"}


def test_a_client_that_only_names_its_budget_leaves_it_to_the_counts(clients: Path, tmp_path: Path) -> None:
    """Whatever the model: no private step is taken, and the vectors say nothing beside the counts."""
    found = {}
    for model in ("transe", "distmult"):
        training = {"model": model, "dimension": 8}
        found[model] = federate(
            clients, out=tmp_path / model, own={"epsilon": 8.0}, rounds=2, local_epochs=1, training=training
        )
        for run in map(Run.open, sorted((tmp_path / model / "clients").iterdir())):
            assert run.config.private_steps == 0
            assert float(run.parameters.relations.abs().max()) == 0
    assert found["transe"]["protocols"]["fede"]["mrr"] == pytest.approx(
        found["distmult"]["protocols"]["fede"]["mrr"], rel=0.2
    )


def test_a_client_without_steps_is_not_averaged_in(clients: Path, tmp_path: Path) -> None:
    """It would send rows that nothing was learnt in, and pull to zero those of everybody who holds them."""
    sent: dict[str, np.ndarray] = {}

    def note(message: Message, reply: Message, name: str) -> Message:
        if message.metadata.message_type == messages.TRAIN:
            sent[name] = messages.array(reply, "rows", 1 << 30)
        return reply

    federation = Federation(clients, tmp_path / "f", change=note, rounds=2)
    federation.nodes[0]["own"] = json.dumps({"epsilon": 2.0})
    said: list[str] = []
    server = federation.run(tell=said.append)
    assert "client0" in said[0]
    assert server.idle == {"client0"}
    assert sent.keys() == {"client1", "client2"}
    assert [line["came"] for line in federation.trace] == [["client1", "client2"]] * 2
    done = Coordinator.resume(federation.terms, tmp_path / "f" / "server")
    assert done is not None
    assert done.idle == ["client0"]
    idle, *others = (set(done.seats[f"client{n}"].places.tolist()) for n in range(3))
    for name, own, other in (("client1", *others), ("client2", *reversed(others))):
        alone = sorted((own & idle) - other)
        assert alone
        places = done.seats[name].places
        assert (np.diff(places) > 0).all()
        mine = np.searchsorted(places, alone)
        np.testing.assert_array_equal(done.table[alone], sent[name][mine])


def test_where_nothing_is_exchanged_no_round_is_run(
    clients: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "f"
    words = ["federate", "run", str(clients), "--out", str(out), "--rounds", "3", "--model", "transe"]
    assert main([*words, "--dimension", "8", "--epsilon", "4", "--json"]) == 0
    told = capsys.readouterr()
    assert "Nothing is exchanged" in told.err
    result = json.loads(told.out)
    assert result["rounds"] == 0
    assert result["idle"] == ["client0", "client1", "client2"]
    assert not (out / "server" / "trace.jsonl").exists()
    assert all(one["epsilon"] <= 4 and one["mrr"] > 0.01 for one in result["clients"])
    assert all(verify(Run.open(one))["valid"] for one in sorted((out / "clients").iterdir()))
