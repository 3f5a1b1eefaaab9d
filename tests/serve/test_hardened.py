"""The service under bad luck and bad company: restarts, slow connections, full logs, keys in other hands."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Server
from tests.serve.shop import make_shop, post, serving
from veilgraph.errors import InputError, UnavailableError
from veilgraph.run.run import Run
from veilgraph.serve.app import create
from veilgraph.serve.service import Service, Terms
from veilgraph.serve.store import Question, open_store

PEOPLE = [f"user/{i:02d}" for i in range(1, 60)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_shop(tmp_path_factory.mktemp("shop"))


def test_a_store_that_restarts_is_used_again(postgres_server: Server) -> None:
    """Also where the connection is lost between beginning and the lock: it was «inside» for ever."""
    store = open_store(postgres_server.url)
    ask = lambda number: store.settle([Question("ann", f"q{number}", 1, [number])], limit=100)[0]  # noqa: E731
    assert ask(0).spent == 1
    for number in (1, 2):
        postgres_server.stop()
        for _ in range(2):
            with pytest.raises(UnavailableError, match="PostgreSQL store"):
                ask(number)
            with pytest.raises(UnavailableError):
                store.keys()
        postgres_server.start()
        time.sleep(0.6)  # longer than nobody tries again
        assert store.keys() == {}
        assert ask(number).spent == number + 1
        assert ask(number).again
    store.close()


@pytest.mark.parametrize("restarts", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_restarts_under_load(restarts: int, postgres_server: Server, run: Run) -> None:
    """Ten of ten are survived, answers meanwhile are 503, and every list that was given was charged once."""
    store = open_store(postgres_server.url)
    key = store.add_key("front", "reader")
    store.close()
    seen: Counter[int] = Counter()
    given: set[tuple[str, int]] = set()
    over, lock = threading.Event(), threading.Lock()

    def client(number: int, address: str) -> None:
        draw = 0
        while not over.is_set():
            draw += 1
            user = PEOPLE[(number * 7 + draw) % len(PEOPLE)]
            try:
                status, _ = post(address, "/v1/recommend", key, {"user": user, "draw": draw})
            except OSError:
                status = 0
            with lock:
                seen[status] += 1
                if status == 200:
                    given.add((user, draw))

    words = (
        "--store",
        postgres_server.url,
        "--user-budget",
        "1e6",
        "--key-budget",
        "1e9",
        "--sanitise",
        "random",
        "--rate",
        "1e9",
    )
    with serving(run.folder, *words) as (address, process):
        threads = [threading.Thread(target=client, args=(n, address)) for n in range(4)]
        for one in threads:
            one.start()
        for _ in range(restarts):
            time.sleep(0.5)
            postgres_server.stop()
            _wait_until(address, 503)
            assert _status(address, "/healthz") == 200
            postgres_server.start()
            _wait_until(address, 200)
        time.sleep(0.5)
        over.set()
        for one in threads:
            one.join()
        assert process.poll() is None
    assert set(seen) <= {200, 503}, seen
    assert seen[200] > 10
    assert seen[503] > 0
    store = open_store(postgres_server.url)
    kept = store.run("SELECT COUNT(*), COALESCE(SUM(cost), 0) FROM answers")[0]
    paid = store.run("SELECT COALESCE(SUM(spent), 0) FROM people")[0][0]
    asked = store.run("SELECT COALESCE(SUM(spent), 0) FROM quotas")[0][0]
    store.close()
    assert kept[1] == paid == asked, "budgets are exact"
    assert len(given) <= kept[0] <= len(given) + seen[503]


def _wait_until(address: str, ready: int) -> None:
    deadline = time.monotonic() + 10
    while _status(address, "/readyz") != ready:
        assert time.monotonic() < deadline, f"/readyz does not say {ready}"
        time.sleep(0.1)


def _status(address: str, path: str) -> int:
    try:
        with urllib.request.urlopen(address + path, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_slow_connections_keep_nobody_waiting(run: Run, tmp_path: Path) -> None:
    """Headers that never end are cut off, and one address has so many connections; others are answered at once."""
    store = open_store(str(tmp_path / "s.sqlite"))
    key = store.add_key("front", "reader")
    store.close()
    words = ("--store", str(tmp_path / "s.sqlite"), "--connections", "40", "--host", "127.0.0.1")
    with serving(run.folder, *words) as (address, _):
        port = int(address.rpartition(":")[2])
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(39)]
        for one in slow:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        status, _ = post(address, "/v1/recommend", key, {"user": "user/01"})
        assert status == 200
        more = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        time.sleep(0.3)
        refused = 0
        for one in more:
            one.settimeout(2)
            try:
                refused += one.recv(1) == b""
            except ConnectionError:
                refused += 1
            except TimeoutError:
                pass
        assert refused >= 4
        for one in slow:
            one.settimeout(14)
        began = time.monotonic()
        with suppress(ConnectionError):
            assert slow[0].recv(1) == b"", "the server lets go of it"
        assert time.monotonic() - began < 13
        for one in (*slow, *more):
            one.close()


def test_headers_and_handshakes_take_nothing(run: Run, tmp_path: Path) -> None:
    """Headers without end are cut off, and connections that wished to be something else are given back."""
    store = open_store(str(tmp_path / "s.sqlite"))
    store.add_key("front", "reader")
    store.close()
    with serving(run.folder, "--store", str(tmp_path / "s.sqlite"), "--connections", "20") as (
        address,
        process,
    ):
        port = int(address.rpartition(":")[2])
        handshake = (
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.sendall(handshake)
                one.settimeout(5)
                assert one.recv(100).startswith(b"HTTP/1.1 ")
        assert _status(address, "/healthz") == 200
        with socket.create_connection(("127.0.0.1", port)) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
            with pytest.raises(OSError):
                endless_headers(one)
        peak = Path(f"/proc/{process.pid}/status")
        if peak.exists():
            line = next(line for line in peak.read_text().splitlines() if line.startswith("VmHWM"))
            assert int(line.split()[1]) < 1 << 20
        assert _status(address, "/healthz") == 200


def endless_headers(one: socket.socket) -> None:
    for number in range(1_000_000):
        one.sendall(b"a%d: x\r\n" % number)


def test_somebody_elses_tables_are_not_taken(tmp_path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(tmp_path / "theirs.sqlite")
    connection.execute("CREATE TABLE people (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match="somebody else's"):
        open_store(str(tmp_path / "theirs.sqlite"))


def test_a_full_log_is_no_reason_not_to_answer(run: Run, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    store = open_store(str(tmp_path / "s.sqlite"))
    key = store.add_key("front", "reader")

    def full(line: str) -> None:
        raise OSError(28, "No space left on device")

    app = create(Service.open(run.folder, store, Terms(top=5)), tell=full)
    with TestClient(app) as client:
        answer = client.post(
            "/v1/recommend", json={"user": "user/01"}, headers={"Authorization": f"Bearer {key}"}
        )
        assert answer.status_code == 200
        assert "veil_log_lost_total 1.0" in client.get("/metrics").text


def test_one_key_does_not_spend_everybodys_budget(run: Run, tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    store = open_store(str(tmp_path / "s.sqlite"))
    keys = {name: store.add_key(name, "reader") for name in ("lost", "other")}
    service = Service.open(run.folder, store, Terms(top=5, key_budget=3))
    with TestClient(create(service)) as client:

        def ask(key: str, user: str) -> tuple[int, Any]:
            answer = client.post(
                "/v1/recommend", json={"user": user}, headers={"Authorization": f"Bearer {keys[key]}"}
            )
            return answer.status_code, answer.json()

        assert [ask("lost", user)[0] for user in PEOPLE[:5]] == [200, 200, 200, 429, 429]
        assert ask("lost", PEOPLE[0])[0] == 200, "what was given is given again"
        assert "key" in ask("lost", PEOPLE[4])[1]["detail"]
        assert ask("other", PEOPLE[4])[0] == 200
    assert store_spent(tmp_path / "s.sqlite") == 4


def store_spent(path: Path) -> float:
    store = open_store(str(path))
    try:
        return float(store.run("SELECT SUM(spent) FROM people")[0][0]) / 1e6
    finally:
        store.close()


def test_where_nobody_says_a_key_spends_a_tenth(run: Run, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "s.sqlite"))
    service = Service.open(run.folder, store, Terms(top=5, user_budget=50))
    assert service.key_budget == len(service.places) * 50 * 0.1
    assert json.loads(json.dumps(service.statement()))["lists"]["budget"] == 50
    store.close()
