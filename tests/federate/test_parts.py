"""Tokens, parts of a graph, messages, and the server's arithmetic and refusals, without any training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from tests.conftest import random_graph
from veilgraph import machine, registry
from veilgraph.errors import ConfigError, InputError, RunError, UnknownNameError, UsageError
from veilgraph.federate import messages
from veilgraph.federate.coordinator import Coordinator, Refused, check_tokens, mean, most_rows, trimmed
from veilgraph.federate.divide import WAYS, divide
from veilgraph.federate.names import new_secret, read_secret, tokens
from veilgraph.federate.strategies import strategy
from veilgraph.federate.terms import Terms
from veilgraph.load import Graph
from veilgraph.mark import mark

TERMS = Terms(rounds=3, training={"model": "transe", "dimension": 4})


# --- names ------------------------------------------------------------------------------------------------------------
def test_tokens_align_names_and_hide_them(tmp_path: Path) -> None:
    secret = new_secret(tmp_path / "secret")
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    assert read_secret(tmp_path / "secret") == secret
    names = [f"patient/{i}" for i in range(1000)]
    first, again = tokens(names, secret), tokens(names[::-1], secret)
    assert np.array_equal(first, again[::-1])
    assert len(np.unique(first, axis=0)) == 1000
    assert not (tokens(names, b"another secret, long enough") == first).all(1).any()
    assert tokens([], secret).shape == (0, 16)
    with pytest.raises(FileExistsError):
        new_secret(tmp_path / "secret")
    (tmp_path / "short").write_text("1234")
    with pytest.raises(InputError, match="guessed"):
        read_secret(tmp_path / "short")


# --- parts of a graph -------------------------------------------------------------------------------------------------
def _named(graph: Graph, split: str) -> set[tuple[str, str, str]]:
    rows = graph.splits[split]
    return {(graph.entities[int(h)], graph.relations[int(r)], graph.entities[int(t)]) for h, r, t in rows}


@pytest.mark.parametrize("by", WAYS)
def test_every_statement_is_at_one_client(by: str) -> None:
    graph = random_graph(60, 9, 900)
    parts = divide(graph, 3, by=by)
    assert list(parts) == ["client0", "client1", "client2"]
    trains = [_named(part, "train") for part in parts.values()]
    assert set.union(*trains) == _named(graph, "train")
    assert sum(map(len, trains)) == len(graph.train)
    assert min(map(len, trains)) > 0.6 * max(map(len, trains))
    for part in parts.values():
        assert set(part.train[:, [0, 2]].ravel()) == set(range(len(part.entities)))
        assert set(part.train[:, 1]) == set(range(len(part.relations)))
        assert _named(part, "test") <= _named(graph, "test")
    if by == "relation":
        assert sum(len(part.relations) for part in parts.values()) == len(graph.relations)
    assert _named(divide(graph, 3, by=by)["client1"], "train") == trains[1]


def test_graphs_that_cannot_be_divided() -> None:
    graph = random_graph()
    with pytest.raises(UsageError, match="mark the clients"):
        divide(graph.with_marks(mark(graph, everything=True)), 2)
    with pytest.raises(ConfigError, match="relation, entity"):
        divide(graph, 2, by="town")
    with pytest.raises(InputError, match="fewer clients"):
        divide(graph, 9, by="relation")
    with pytest.raises(ConfigError, match="2 to"):
        divide(graph, 1)


# --- terms ------------------------------------------------------------------------------------------------------------
def test_terms_survive_a_message_and_refuse_what_is_the_clients_own() -> None:
    assert Terms.of(TERMS.text()) == TERMS
    for wrong in (
        {"epsilon": 1},
        {"noise_multiplier": 0.1},
        {"mechanism": "lazy"},
        {"drop_confidential": False},
    ):
        with pytest.raises(ConfigError, match="client's own"):
            Terms(training=wrong)
    for text in (
        "[]",
        "{",
        '{"ε": 1}',
        '{"rounds": 0}',
        '{"rounds": true}',
        '{"training": []}',
        '{"strategy": "x"}',
    ):
        with pytest.raises((ConfigError, UnknownNameError)):
            Terms.of(text)
    settings = TERMS.settings({"epsilon": 1.0})
    assert settings["epsilon"] == 1.0
    assert settings["epochs"] == 9


# --- messages ---------------------------------------------------------------------------------------------------------
class Told:
    """As much of a message as is read."""

    def __init__(self, content: RecordDict | None) -> None:
        self.content = content

    def has_content(self) -> bool:
        return self.content is not None


def test_messages_are_measured_before_they_are_unpacked() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    told = Told(messages.pack({"rows": rows}, round=3))
    assert np.array_equal(messages.array(told, "rows", rows.nbytes), rows)
    assert messages.facts(told) == {"round": 3}
    with pytest.raises(messages.Unreadable, match="no tokens"):
        messages.array(told, "tokens", 100)
    large = Told(messages.pack({"rows": np.zeros(1 << 20, np.float32)}))
    with pytest.raises(messages.Unreadable, match="at most 48"):
        messages.array(large, "rows", rows.nbytes)
    for data in (b"", b"\x93NUMPY junk", b"PK\x03\x04", np.array([1]).tobytes()):
        forged = Array(dtype="float32", shape=(3, 4), stype="numpy.ndarray", data=data)
        content = RecordDict({"arrays": ArrayRecord({"rows": forged}), "facts": ConfigRecord({})})
        with pytest.raises(messages.Unreadable):
            messages.array(Told(content), "rows", rows.nbytes)
    for empty in (Told(None), Told(RecordDict({}))):
        with pytest.raises(messages.Unreadable):
            messages.facts(empty)


def test_a_header_that_lies_about_its_size_is_refused() -> None:
    header = np.lib.format.magic(1, 0)
    about = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4), }"
    about += b" " * (-(len(header) + 2 + len(about) + 1) % 64) + b"\n"
    data = header + len(about).to_bytes(2, "little") + about + b"\0" * 48
    forged = Array(dtype="float32", shape=(3, 4), stype="numpy.ndarray", data=data)
    content = RecordDict({"arrays": ArrayRecord({"rows": forged}), "facts": ConfigRecord({})})
    with pytest.raises(messages.Unreadable, match="cannot be read"):
        messages.array(Told(content), "rows", 48)


# --- the server -------------------------------------------------------------------------------------------------------
def _came(rng: np.random.Generator, clients: int, rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    made = []
    for _ in range(clients):
        places = np.sort(rng.permutation(rows)[: rows // 2])
        made.append((places, rng.normal(size=(len(places), 3)).astype(np.float32)))
    return made


@pytest.mark.parametrize("combine", [mean, trimmed])
def test_aggregation_equals_a_loop(combine) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40, 3)).astype(np.float32)
    came = _came(rng, 5, 40)
    found = combine(table, came)
    for row in range(40):
        sent = np.array([rows[list(places).index(row)] for places, rows in came if row in places])
        if len(sent) >= 3 and combine is trimmed:
            sent = np.sort(sent, 0)[1:-1]
        wanted = sent.mean(0) if len(sent) else table[row]
        np.testing.assert_allclose(found[row], wanted, atol=1e-5)


def test_one_hostile_client_moves_a_trimmed_row_no_further_than_the_others_span() -> None:
    everywhere = np.arange(4)
    honest = [(everywhere, np.full((4, 2), value, np.float32)) for value in (1.0, 1.2, 1.4)]
    hostile = (everywhere, np.full((4, 2), 1e30, np.float32))
    table = np.zeros((4, 2), np.float32)
    assert trimmed(table, [*honest, hostile]).max() <= 1.4
    assert mean(table, [*honest, hostile]).min() > 1e29


def _two(folder: Path) -> Coordinator:
    own = {"a": tokens("xyz", b"s" * 16), "b": tokens("yzw", b"s" * 16)}
    return Coordinator.begin(TERMS, folder, own)


def test_rows_are_averaged_over_the_clients_that_hold_them(tmp_path: Path) -> None:
    server = _two(tmp_path)
    assert server.table.shape == (4, 4)
    server.accept("a", 1, np.full((3, 4), 1.0, np.float32))
    server.accept("b", 1, np.full((3, 4), 3.0, np.float32))
    server.close_round()
    assert server.rows_of("a")[:, 0].tolist() == [1, 2, 2]
    assert server.rows_of("b")[:, 0].tolist() == [2, 2, 3]
    assert server.others_of("a")[:, 0].tolist() == [3]
    again = Coordinator.resume(TERMS, tmp_path)
    assert again is not None
    assert again.round == 1
    assert np.array_equal(again.table, server.table)
    again.check_again("a", tokens("xyz", b"s" * 16))
    with pytest.raises(Refused, match="other rows"):
        again.check_again("a", tokens("xyw", b"s" * 16))
    with pytest.raises(Refused, match="not there"):
        again.check_again("c", tokens("xyz", b"s" * 16))
    with pytest.raises(RunError, match="other terms"):
        Coordinator.resume(Terms(rounds=4), tmp_path)


def test_hostile_rows_are_refused_and_the_round_goes_on(tmp_path: Path) -> None:
    server = _two(tmp_path)
    good = np.ones((3, 4), np.float32)
    spoilt = good.copy()
    for value in (np.nan, np.inf, -np.inf):
        spoilt[1, 2] = value
        with pytest.raises(Refused, match="no numbers"):
            server.accept("a", 1, spoilt)
    for wrong in (good[:2], good[:, :3], good.astype(np.float64), good.ravel(), np.array("x")):
        with pytest.raises(Refused, match="rows are"):
            server.accept("a", 1, wrong)
    for number in (0, 2, -1):
        with pytest.raises(Refused, match="this is round 1"):
            server.accept("a", number, good)
    with pytest.raises(Refused, match="not a client"):
        server.accept("c", 1, good)
    server.accept("a", 1, good)
    with pytest.raises(Refused, match="before"):
        server.accept("a", 1, good)
    before = server.rows_of("b")[2]
    server.close_round(refused={"b": "x"})
    assert np.array_equal(server.rows_of("b")[2], before)
    assert '"refused": {"b": "x"}' in (tmp_path / "trace.jsonl").read_text()


def test_names_and_tokens_no_honest_client_sends() -> None:
    own = tokens("xyz", b"s" * 16)
    for name in ("", "../up", "a/b", "x" * 101, ".hidden", "a\nb"):
        with pytest.raises(Refused, match="name"):
            check_tokens(name, own, 9)
    for wrong in (own[:0], own[:, :8], own.astype(np.int64), own[0]):
        with pytest.raises(Refused, match="tokens are"):
            check_tokens("a", wrong, 9)
    with pytest.raises(Refused, match="twice"):
        check_tokens("a", own[[0, 0]], 9)


def test_a_client_brings_no_more_rows_than_a_part_of_the_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """76 MB of tokens became 3 GB on the server."""
    terms = Terms(training={"model": "transe", "dimension": 128})
    assert most_rows(terms) * 128 * 4 < machine.memory() / 8
    monkeypatch.setattr(machine, "memory", lambda: 1 << 20)
    held = most_rows(terms)
    assert 50 < held < (1 << 20) / 8 / (128 * 4)
    own = tokens(map(str, range(held + 1)), b"s" * 16)
    with pytest.raises(Refused, match="VEILGRAPH_LIMITS=rows="):
        Coordinator.begin(terms, tmp_path / "server", {"a": own[:5], "b": own})
    assert not (tmp_path / "server").exists()
    Coordinator.begin(terms, tmp_path / "server", {"a": own[:5], "b": own[:held]})
    monkeypatch.setenv("VEILGRAPH_LIMITS", f"rows={held + 1}")
    Coordinator.begin(terms, tmp_path / "more", {"a": own[:5], "b": own})


@pytest.mark.parametrize("name", registry.names("strategies"))
def test_every_strategy_names_each_row_once(name: str) -> None:
    from veilgraph.config import TrainConfig
    from veilgraph.train.session import Session

    graph = random_graph()
    for reciprocal in (False, True):
        encoder = {"encoder": "kegcn", "encoder_bases": 3} if strategy(name).of_encoder else {}
        config = TrainConfig.of({"model": "distmult", "dimension": 4, "reciprocal": reciprocal, **encoder})
        p = Session.open(graph, config).state.parameters
        names, table = strategy(name).names(graph, config), strategy(name).table(p)
        assert len(names) == len(set(names)) == len(table)
        first = strategy(name).first_rows(config, len(names), np.random.default_rng(0))
        assert first.shape == tuple(table.shape)
        assert first.dtype == np.float32
