"""Whole federations in one process: what they learn, survive, and never say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Message

from tests.federate.federation import TRAINING, Federation, rows_of
from veilgraph.cli import main
from veilgraph.errors import ConfigError, InputError, RunError, UsageError
from veilgraph.federate import federate
from veilgraph.federate.client_app import app, kept
from veilgraph.federate.divide import divide
from veilgraph.federate.grid import LocalGrid
from veilgraph.federate.member import Member
from veilgraph.federate.messages import pack
from veilgraph.federate.server import Server
from veilgraph.federate.terms import Terms
from veilgraph.federate.together import union
from veilgraph.files import read_arrays
from veilgraph.load import Graph, load, save
from veilgraph.load.vocabulary import Vocabulary
from veilgraph.run.run import Run
from veilgraph.run.verify import verify


def test_a_federation_learns_and_every_client_has_a_run(clients: Path, tmp_path: Path) -> None:
    found = federate(clients, out=tmp_path / "f", rounds=4, local_epochs=2, training=TRAINING)
    assert found["strategy"] == "fede"
    assert [one["name"] for one in found["clients"]] == ["client0", "client1", "client2"]
    for one in found["clients"]:
        assert one["epsilon"] is None
        assert set(one["protocols"]) == {"fede", "shared"}
        run = Run.open(tmp_path / "f" / "clients" / one["name"])
        assert verify(run)["valid"]
        assert len(run.trace) == 8
    shared = [rows_of(tmp_path / "f" / "clients")[f"client{i}"] for i in range(3)]
    names = [list(Run.open(tmp_path / "f" / "clients" / f"client{i}").entities) for i in range(3)]
    both = sorted(set(names[0]) & set(names[1]))
    assert both
    for name in both[:20]:  # those who hold it have the same row
        assert np.array_equal(shared[0][names[0].index(name)], shared[1][names[1].index(name)])


def test_relations_can_be_shared_instead(hospital: Graph, tmp_path: Path) -> None:
    graphs = {}
    for name, graph in divide(hospital, 2, by="random").items():
        save(graph, tmp_path / name)
        graphs[name] = tmp_path / name
    federate(graphs, out=tmp_path / "f", strategy="fedr", rounds=2, local_epochs=1, training=TRAINING)
    runs = [Run.open(tmp_path / "f" / "clients" / name) for name in graphs]
    both = sorted(set(runs[0].relations) & set(runs[1].relations))
    places = [[run.relations.id(name) for name in both] for run in runs]
    for offset in (0, 1):  # forwards and backwards
        rows = [
            run.parameters.relations.numpy()[np.array(place) + offset * len(run.relations)]
            for run, place in zip(runs, places)
        ]
        assert np.array_equal(*rows)
    together = sorted(set(runs[0].entities) & set(runs[1].entities))[:5]
    rows = [run.parameters.entities.numpy()[run.entities.ids(together)] for run in runs]
    assert not np.array_equal(*rows)


def test_the_server_never_sees_a_name(clients: Path, tmp_path: Path) -> None:
    """Everything it receives, as bytes, and every file it keeps: no name of an entity or relation is in there."""
    received = bytearray()

    def look(message: Message, reply: Message, name: str) -> Message:
        for record in reply.content.values():
            for value in record.values():
                received.extend(getattr(value, "data", str(value).encode()))
        return reply

    federation = Federation(clients, tmp_path / "f", look)
    federation.run()
    for one in (tmp_path / "f" / "server").iterdir():
        received.extend(one.read_bytes())
    assert len(received) > 10_000
    for node in federation.nodes:
        run = Run.open(node["folder"])
        for name in [*run.entities, *run.relations]:
            assert name.encode() not in received


def test_an_interrupted_federation_ends_as_if_it_had_not_been(clients: Path, tmp_path: Path) -> None:
    whole = Federation(clients, tmp_path / "whole")
    whole.run()

    class Killed(BaseException):
        pass

    def kill(message: Message, reply: Message, name: str) -> Message:
        if (
            message.metadata.message_type == "train"
            and message.metadata.group_id == "2"
            and name == "client1"
        ):
            raise Killed
        return reply

    broken = Federation(clients, tmp_path / "broken", kill)
    with pytest.raises(Killed):
        broken.run()
    broken.change = None
    broken.run()
    assert [line["round"] for line in broken.trace] == [1, 2, 3]
    for node in broken.nodes:
        assert [line["epoch"] for line in Run.open(node["folder"]).trace] == [1, 2, 3]
    for name, rows in rows_of(tmp_path / "whole").items():
        assert np.array_equal(rows, rows_of(tmp_path / "broken")[name])


def test_a_round_that_was_trained_is_not_trained_again(clients: Path, tmp_path: Path) -> None:
    answers: list[np.ndarray] = []

    def twice(message: Message, reply: Message, name: str) -> Message:
        if message.metadata.message_type == "train" and name == "client0":
            again = app(message, grid_context)
            first, second = (one.content["arrays"]["rows"].numpy() for one in (reply, again))
            answers.extend((first, second))
        return reply

    federation = Federation(clients, tmp_path / "f", twice)
    grid_context = LocalGrid(app, federation.nodes).contexts[2]
    federation.run()
    assert len(answers) == 6
    for first, second in zip(answers[::2], answers[1::2]):
        assert np.array_equal(first, second)


def test_a_client_that_is_lost_is_left_out_and_may_return(clients: Path, tmp_path: Path) -> None:
    def lose(message: Message, reply: Message, name: str) -> Message:
        return reply

    federation = Federation(clients, tmp_path / "f", lose, rounds=4)

    class Losing(LocalGrid):
        def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
            for message in messages:
                lost = message.metadata.dst_node_id == 3 and message.metadata.group_id == "2"
                if not (lost and message.metadata.message_type == "train"):
                    yield from self.pull_messages(self.push_messages([message]))

    kept.clear()
    server = Server(Losing(app, federation.nodes), federation.terms, tmp_path / "f" / "server", 3)
    server.run()
    assert [line["lost"] for line in federation.trace] == [[], ["client1"], [], []]
    assert [len(line["came"]) for line in federation.trace] == [3, 2, 3, 3]
    assert len(Run.open(tmp_path / "f" / "client1").trace) == 3


@pytest.mark.parametrize("what", ["nan", "shape", "large", "replay", "silence", "junk", "liar"])
def test_hostile_uploads_are_refused_with_a_reason(clients: Path, tmp_path: Path, what: str) -> None:
    before: list[Message] = []

    def spoil(message: Message, reply: Message, name: str) -> Message:
        if message.metadata.message_type != "train" or name != "client2":
            return reply
        rows = reply.content["arrays"]["rows"].numpy().copy()
        number = int(message.content["facts"]["round"])
        if what == "replay":
            before.append(reply)
            return Message(before[0].content, reply_to=message) if number > 1 else reply
        if what == "nan":
            rows[0, 0] = np.nan
        if what == "shape":
            rows = rows[:-1]
        if what == "large":
            rows = np.zeros((1 << 22, 16), np.float32)
        content = pack({"rows": rows}, status="trained", round=number)
        if what == "silence":
            content = pack({}, status="trained", round=number)
        if what == "junk":
            content = pack({"rows": rows}, status="<b>no</b>", reason="/m/0abc is ill", round=number)
        if what == "liar":
            content = pack({"rows": rows}, status="trained", round="1")
        return Message(content, reply_to=message)

    federation = Federation(clients, tmp_path / "f", spoil)
    federation.run()
    refused = [line["refused"] for line in federation.trace]
    assert refused[2]["client2"]
    assert "0abc" not in json.dumps(refused)
    assert [len(line["came"]) for line in federation.trace] == [3 if what == "replay" else 2, 2, 2]
    assert all(np.isfinite(rows).all() for rows in rows_of(tmp_path / "f").values())


# --- commands ---------------------------------------------------------------------------------------------------------
def test_commands(hospital: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(hospital, tmp_path / "graph")
    parts, out = str(tmp_path / "parts"), str(tmp_path / "f")
    assert (
        main(["federate", "split", str(tmp_path / "graph"), "--clients", "2", "--out", parts, "--json"]) == 0
    )
    assert len(json.loads(capsys.readouterr().out)["clients"]) == 2
    words = ["federate", "run", parts, "--out", out, "--rounds", "2", "--model", "transe", "--dimension", "8"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"strategy", "defence", "rounds", "clients", "mrr", "protocol"} <= set(found)
    assert {"name", "mrr", "epsilon"} <= set(found["clients"][0])
    assert main(words) == 0  # it is over, and says so again
    assert "MRR shared" in capsys.readouterr().out
    assert main([*words, "--defence", "dpsgd"]) == 2
    assert "--epsilon" in capsys.readouterr().err
    assert main(["federate", "run", str(tmp_path / "none"), "--out", out]) == 3
    assert main(["federate", "run", parts, "--out", str(tmp_path / "graph")]) == 2
    assert main(["federate", "walk"]) == 2
    assert main([*words[:-4], "--model", "transe", "--dimension", "16"]) == 3  # other terms
    assert main(["federate", "secret", str(tmp_path / "s")]) == 0
    assert main(["federate", "key", str(tmp_path / "k")]) == 0
    assert (tmp_path / "k").stat().st_mode & 0o077 == 0
    assert main(["list", "strategies"]) == 0
    assert "fedr" in capsys.readouterr().out


def test_all_data_in_one_place_is_a_baseline(clients: Path, tmp_path: Path) -> None:
    terms = {"rounds": 3, "local_epochs": 1, "training": TRAINING}
    found = federate(clients, out=tmp_path / "f", strategy="together", **terms)
    assert found["strategy"] == "together"
    assert [one["name"] for one in found["clients"]] == sorted(one.name for one in clients.iterdir())
    only = federate({"only": clients / "client0"}, out=tmp_path / "one", strategy="together", **terms)
    run = Run.open(tmp_path / "one" / "together")
    plain = run.evaluate("test", graph=union({"only": load(clients / "client0")}))
    assert only["mrr"] == pytest.approx(plain["mrr"], rel=1e-6)
    again = federate(clients, out=tmp_path / "f", strategy="together", **terms)
    assert again == found
    with pytest.raises(RunError, match="other terms"):
        federate(clients, out=tmp_path / "f", strategy="together", **{**terms, "rounds": 4})
    with pytest.raises(UsageError, match="nothing is promised"):
        federate(clients, out=tmp_path / "g", own={"epsilon": 1.0}, strategy="together", **terms)


def test_what_one_client_trains_on_is_in_no_test_of_all() -> None:
    names, kinds = Vocabulary(["a", "b", "c"]), Vocabulary(["r"], "relation")
    one = Graph(names, kinds, {"train": np.array([[0, 0, 1]]), "test": np.array([[1, 0, 2]])})
    other = Graph(names, kinds, {"train": np.array([[1, 0, 2], [0, 0, 1]]), "test": np.array([[0, 0, 2]])})
    whole = union({"one": one, "other": other})
    assert whole.train.tolist() == [[0, 0, 1], [1, 0, 2]]
    assert whole.splits["test"].tolist() == [[0, 0, 2]]


def test_rows_go_as_far_as_the_server_steps(clients: Path, tmp_path: Path) -> None:
    tables = {}
    for step in (1.0, 2.0):
        federation = Federation(clients, tmp_path / f"{step}", rounds=1, server_step=step)
        federation.run()
        tables[step] = read_arrays(tmp_path / f"{step}" / "server" / "state.safetensors")[0]
    first = tables[1.0]["first"]
    np.testing.assert_allclose(tables[2.0]["table"] - first, 2 * (tables[1.0]["table"] - first), atol=1e-5)
    with pytest.raises(ConfigError, match="server_step"):
        federate(clients, out=tmp_path / "f", server_step=0)


def test_own_epochs_come_after_the_rounds_and_stay_with_the_client(clients: Path, tmp_path: Path) -> None:
    plain = Federation(clients, tmp_path / "plain", rounds=2)
    plain.run()
    longer = Federation(clients, tmp_path / "longer", rounds=2, own_epochs=2)
    longer.run()
    table = read_arrays(tmp_path / "longer" / "server" / "state.safetensors")[0]["table"]
    folder = tmp_path / "longer" / "clients"
    for name, rows in rows_of(folder).items():
        run = Run.open(folder / name)
        assert len(run.trace) == run.config.epochs
        assert verify(run)["valid"]
        shared = {row.tobytes() for row in table}
        assert not any(row.tobytes() in shared for row in rows)  # every row moved on
    for rows in rows_of(tmp_path / "plain" / "clients").values():
        shared = {
            row.tobytes()
            for row in read_arrays(tmp_path / "plain" / "server" / "state.safetensors")[0]["table"]
        }
        assert all(row.tobytes() in shared for row in rows)


def test_own_epochs_are_paid_for_and_never_sent(clients: Path, tmp_path: Path) -> None:
    own = {"epsilon": 4.0, "delta": 1e-5, "mechanism": "lazy", "seed": 0}
    terms = Terms(rounds=1, local_epochs=1, own_epochs=2, training=TRAINING)
    member = Member.join(tmp_path / "run", clients / "client0", terms, b"s" * 32, own)
    rows = member.rows()
    sent = member.train(1, rows)
    assert sent is not None
    after_rounds = member.run.epsilon
    with pytest.raises(InputError, match="round 2 of 1"):
        member.train(2, rows)
    state = member.session.state
    found = member.finish(sent)
    assert after_rounds < found["epsilon"] <= 4.0
    assert state.epoch == 3
    again = Member.open(tmp_path / "run", clients / "client0", b"s" * 32)  # as after a crash
    assert again.finish(sent)["epsilon"] == found["epsilon"]


def test_wrong_terms_are_explained(clients: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="aggregate"):
        federate(clients, out=tmp_path / "f", aggregate="median")
    own = {"epsilon": 1.0, "order": "unrestricted-first"}
    with pytest.raises(UsageError, match="interleaved"):
        federate(clients, out=tmp_path / "g", own=own, rounds=1, training=TRAINING)
    federate(clients, out=tmp_path / "h", rounds=1, local_epochs=1, training=TRAINING)
    with pytest.raises(RunError, match="other terms"):
        federate(clients, out=tmp_path / "h", rounds=2, local_epochs=1, training=TRAINING)
