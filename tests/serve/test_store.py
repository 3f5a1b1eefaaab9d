"""The budget store, the same tests on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from veilgraph.errors import InputError
from veilgraph.serve.store import Question, open_store


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    found = request.getfixturevalue("postgres")
    assert isinstance(found, str)
    return found


def test_a_store_keeps_its_promises(address: str) -> None:
    """One database, one walk through all of it: PostgreSQL takes seconds to start."""
    _spends_once_and_never_too_much(address)
    _sums_are_exact(address)
    _what_fails_changes_nothing(address)
    _sixty_four_clients_never_overspend(address)
    _keys_are_kept_as_hashes(address)


def _spends_once_and_never_too_much(address: str) -> None:
    store = open_store(address)
    first, again, other = store.settle(
        [Question("ann", "q1", 2, ["a"]), Question("ann", "q1", 2, ["b"]), Question("ann", "q2", 2, ["c"])],
        limit=3,
    )
    assert (first.answer, first.spent, first.again) == (["a"], 2, False)
    assert (again.answer, again.spent, again.again) == (["a"], 2, True)  # the stored answer, free of charge
    assert (other.answer, other.spent) == (None, 2)
    store.close()
    store = open_store(address)  # and it lasts
    assert store.spent("ann") == 2
    assert store.answered(["q1", "q2"]) == {"q1"}
    assert store.settle([Question("ann", "q1", 2, ["z"])], limit=0)[0].answer == ["a"]
    assert store.settle([Question("bob", "q3", 2, ["d"])], limit=3)[0].spent == 2
    store.close()


def _sums_are_exact(address: str) -> None:
    """Ten times a tenth is one, and not a millionth more."""
    store = open_store(address)
    settled = store.settle([Question("cyd", f"c{i}", 0.1, [i]) for i in range(11)], limit=1.0)
    assert [one.answer is None for one in settled] == [False] * 10 + [True]
    assert settled[-1].spent == 1.0
    assert store.settle([Question("cyd", "c99", 1e-9, [0])], limit=1.0)[0].answer is None  # rounded up
    assert store.settle([Question("dan", "d1", 0.29, [0])], limit=0.29)[0].answer == [0]
    assert store.settle([Question("dan", "d2", 1e6, [0])], limit=float("inf"))[0].answer == [0]
    store.close()


def _what_fails_changes_nothing(address: str) -> None:
    store = open_store(address)
    with pytest.raises(TypeError):
        store.settle([Question("eve", "e1", 1, ["x"]), Question("eve", "e2", 1, object())], limit=5)
    assert store.spent("eve") == 0
    assert store.answered(["e1"]) == set()
    assert store.settle([Question("eve", "e1", 1, ["x"])], limit=5)[0].spent == 1
    store.close()


def _sixty_four_clients_never_overspend(address: str) -> None:
    """Every client has a connection of its own, as servers on one store have; ten may pass."""

    def ask(number: int) -> object:
        store = open_store(address)
        try:
            return store.settle([Question("fay", f"f{number}", 1, [number])], limit=10)[0].answer
        finally:
            store.close()

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(ask, range(64)))
    assert sum(answer is not None for answer in answers) == 10
    store = open_store(address)
    assert store.spent("fay") == 10
    with ThreadPoolExecutor(16) as pool:  # the same question from many: one answer, one charge
        same = list(pool.map(lambda _: ask(1000), range(16)))
    assert same == [None] * 16
    store.close()


def _keys_are_kept_as_hashes(address: str) -> None:
    store = open_store(address)
    key = store.add_key("shop", "reader")
    assert list(store.keys().values()) == [("shop", "reader")]
    assert key not in str(store.run("SELECT * FROM keys"))
    for name, role, word in (("shop", "reader", "already"), ("x", "king", "role"), ("", "reader", "name")):
        with pytest.raises(InputError, match=word):
            store.add_key(name, role)
    store.remove_key("shop")
    assert store.keys() == {}
    with pytest.raises(InputError, match="no key called"):
        store.remove_key("shop")
    store.close()


KILLED = """
import sys, time
from veilgraph.serve.store import Question, open_store
store = open_store(sys.argv[1])
print("begun", flush=True)
for number in range(1_000_000):
    (settled,) = store.settle([Question(f"p{number % 7}", f"{sys.argv[2]}/{number}", 1, [number])], limit=1e9)
    print(number, flush=True)
    time.sleep(0.001)
"""


def test_a_kill_loses_no_spend(tmp_path: Path) -> None:
    """Three writers are killed while they work: what they said was answered is stored and charged, nothing is half done."""
    address = str(tmp_path / "store.sqlite")
    open_store(address).close()
    writers = [
        subprocess.Popen([sys.executable, "-c", KILLED, address, str(i)], stdout=subprocess.PIPE, text=True)
        for i in range(3)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "begun\n"
    time.sleep(1)
    told = 0
    for number, writer in enumerate(writers):
        os.kill(writer.pid, signal.SIGKILL)
        said, _ = writer.communicate()
        answered = [f"{number}/{line}" for line in said.split("\n")[:-1]]
        told += len(answered)
        store = open_store(address)
        for start in range(0, len(answered), 500):
            part = answered[start : start + 500]
            assert store.answered(part) == set(part)
        store.close()
    assert told > 10
    store = open_store(address)
    charged: Counter[str] = Counter()
    for person, cost in store.run("SELECT person, cost FROM answers"):
        charged[person] += cost
    assert dict(store.run("SELECT person, spent FROM people")) == dict(charged)
    assert told <= sum(charged.values()) / 1e6 <= told + 3
    store.close()


def test_a_store_that_was_removed_is_not_charged(tmp_path: Path) -> None:
    """Another server would begin a fresh one at the same place."""
    place = tmp_path / "store.sqlite"
    store = open_store(str(place))
    place.unlink()
    with pytest.raises(InputError, match="removed or replaced"):
        store.settle([Question("gus", "g1", 1, [1])], limit=5)
    open_store(str(place)).close()
    with pytest.raises(InputError, match="removed or replaced"):
        store.settle([Question("gus", "g1", 1, [1])], limit=5)
    store.close()


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    for address in (
        "postgresql://anna:geheim@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=anna&password=geheim",
        "postgresql://anna:ge%heim@127.0.0.1:1/x",
    ):
        with pytest.raises(InputError) as caught:
            open_store(address)
        assert "heim" not in str(caught.value)


def test_files_are_their_owners_and_bad_addresses_are_explained(tmp_path: Path) -> None:
    open_store(str(tmp_path / "deep" / "store.sqlite")).close()
    assert stat.S_IMODE((tmp_path / "deep" / "store.sqlite").stat().st_mode) == 0o600
    (tmp_path / "text").write_text("this is not a database, whatever its name says")
    for wrong in (str(tmp_path / "text"), str(tmp_path), "mysql://localhost/x", "postgresql://127.0.0.1:1/x"):
        with pytest.raises(InputError):
            open_store(wrong)


def charged_and_killed(place: Path) -> None:
    """A server that is killed after 20 charges, which are in its log alone."""
    code = (
        "import os, sys; from veilgraph.serve.store import Question, open_store; store = open_store(sys.argv[1]);"
        "[store.settle([Question('ann', f'q{i}', 1.0, [i])], limit=100) for i in range(20)]; os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=False, timeout=60)


def test_what_a_killed_server_spent_is_in_the_file_after_the_next_start(tmp_path: Path) -> None:
    """A copy of the file alone forgot every charge since the last 256."""
    place, copy = tmp_path / "store.sqlite", tmp_path / "copy" / "store.sqlite"
    copy.parent.mkdir()
    charged_and_killed(place)
    store = open_store(str(place))
    shutil.copy2(place, copy)  # while it runs
    other = open_store(str(copy))
    assert other.spent("ann") == 20
    other.close()
    second = open_store(str(place))  # another server, so that closing the first is not the last
    store.settle([Question("ann", "q20", 1.0, [20])], limit=100)
    store.close()
    shutil.copy2(place, tmp_path / "stopped.sqlite")
    stopped = open_store(str(tmp_path / "stopped.sqlite"))
    assert stopped.spent("ann") == 21
    stopped.close()
    second.close()


def test_a_store_of_several_names_is_refused(tmp_path: Path) -> None:
    place, linked = tmp_path / "store.sqlite", tmp_path / "linked.sqlite"
    charged_and_killed(place)
    os.link(place, linked)
    for name in (place, linked):
        with pytest.raises(InputError, match="hard links"):
            open_store(str(name))
    linked.unlink()
    store = open_store(str(place))
    assert store.spent("ann") == 20
    store.close()
