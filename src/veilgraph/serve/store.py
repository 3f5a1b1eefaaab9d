"""The budget store: who spent what, which answers were given, and who may ask. Spend first, answer second.

One writer at a time, whatever the database: a batch of questions is looked up, charged and answered in one transaction
that is on disk before anything is returned. So

* a question that was answered gets the same answer again, free of charge: repeating it cannot average noise away;
* a person's charges never pass the limit, however many ask at once, here or from other servers on the same store;
* a process that is killed has either charged and stored an answer, or done neither; an answer that did not arrive is
  given again when asked again.

Amounts are whole millionths, rounded up: sums are exact.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from veilgraph.errors import InputError, MissingExtraError

MILLION = 1_000_000
DAY = 86_400  # seconds, in UTC
ROLES = ("reader", "curator")
TABLES = (
    "CREATE TABLE IF NOT EXISTS people (person TEXT PRIMARY KEY, spent BIGINT NOT NULL CHECK (spent >= 0))",
    "CREATE TABLE IF NOT EXISTS answers (question TEXT PRIMARY KEY, person TEXT NOT NULL, cost BIGINT NOT NULL, "
    "answer TEXT NOT NULL, given DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, role TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS quotas (name TEXT NOT NULL, day BIGINT NOT NULL, spent BIGINT NOT NULL CHECK (spent >= 0), "
    "PRIMARY KEY (name, day))",
)
COLUMNS = {
    "people": {"person", "spent"},
    "answers": {"question", "person", "cost", "answer", "given"},
    "keys": {"name", "digest", "role"},
    "quotas": {"name", "day", "spent"},
}


@dataclass(frozen=True)
class Question:
    """Something asked about a person: what it costs, and the answer that would be given if it is new."""

    person: str
    digest: str  # of everything the answer depends on: the model, the policy, the person, which draw
    cost: float
    answer: Any
    key: str = ""  # who asks


@dataclass(frozen=True)
class Settled:
    """What came of a question. ``answer`` is None if a budget does not allow it: the person's, or what the ``key`` may spend in a day."""

    answer: Any
    spent: float
    again: bool  # it had been answered before
    key_spent: bool = False


class Store(ABC):
    """A database. Not for several threads at once."""

    @abstractmethod
    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """One statement, with ? for values."""

    @abstractmethod
    def columns(self, table: str) -> set[str]:
        """Of a table; none where it is not there."""

    @abstractmethod
    def begin(self) -> None:
        """A transaction that no other writer can be in."""

    @abstractmethod
    def commit(self) -> None:
        """On disk when it returns."""

    @abstractmethod
    def rollback(self) -> None:
        """As if nothing had been."""

    @abstractmethod
    def close(self) -> None:
        """Let go."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A transaction; an error inside undoes all of it."""
        self.begin()
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def prepare(self) -> None:
        """Make the tables that are missing; where none is, nobody who writes has to be waited for."""
        if not all(self.columns(table) for table in COLUMNS):
            with self.alone():
                for table in TABLES:
                    self.run(table)
        strange = [table for table, wanted in COLUMNS.items() if not wanted <= self.columns(table)]
        if strange:
            raise InputError(
                f"this database has a table called {strange[0]} that is somebody else's. Take a database of its own."
            )

    # --- budgets ------------------------------------------------------------------------------------------------
    def settle(
        self, questions: Sequence[Question], limit: float, key_limit: float = math.inf
    ) -> list[Settled]:
        """Answer, once and for all, those that are new and allowed; repeat those that were answered.

        ``limit`` is a person's for ever, ``key_limit`` a key's for a day: so that a key that got into other hands spends a part.
        """
        most, settled = millionths(limit, ROUND_FLOOR), []
        of_key, day = millionths(key_limit, ROUND_FLOOR), int(time.time() // DAY)
        with self.alone():
            for one in questions:
                [(found, known)] = self.run(
                    "SELECT (SELECT answer FROM answers WHERE question = ?), (SELECT spent FROM people WHERE person = ?)",
                    (one.digest, one.person),
                )
                spent = int(known or 0)
                if found is not None:
                    settled.append(Settled(json.loads(found), spent / MILLION, True))
                    continue
                cost = millionths(one.cost, ROUND_CEILING)
                if one.answer is None or spent + cost > most:
                    settled.append(Settled(None, spent / MILLION, False))
                    continue
                if one.key and not math.isinf(key_limit):
                    if self._asked(one.key, day) + cost > of_key:
                        settled.append(Settled(None, spent / MILLION, False, key_spent=True))
                        continue
                    self.run(
                        "INSERT INTO quotas (name, day, spent) VALUES (?, ?, ?) "
                        "ON CONFLICT (name, day) DO UPDATE SET spent = quotas.spent + excluded.spent",
                        (one.key, day, cost),
                    )
                self.run(
                    "INSERT INTO people (person, spent) VALUES (?, ?) "
                    "ON CONFLICT (person) DO UPDATE SET spent = people.spent + excluded.spent",
                    (one.person, cost),
                )
                self.run(
                    "INSERT INTO answers (question, person, cost, answer, given) VALUES (?, ?, ?, ?, ?)",
                    (
                        one.digest,
                        one.person,
                        cost,
                        json.dumps(one.answer, ensure_ascii=False),
                        time.time(),
                    ),
                )
                settled.append(Settled(one.answer, (spent + cost) / MILLION, False))
        return settled

    def answered(self, digests: Sequence[str]) -> set[str]:
        """Which of these questions have an answer already."""
        if not digests:
            return set()
        marks = ", ".join("?" * len(digests))
        return {
            row[0]
            for row in self.run(f"SELECT question FROM answers WHERE question IN ({marks})", list(digests))
        }

    def spent(self, person: str) -> float:
        """What a person's answers have cost so far."""
        return self._spent(person) / MILLION

    def _asked(self, key: str, day: int) -> int:
        """What a key has spent of others' budgets today."""
        found = self.run("SELECT spent FROM quotas WHERE name = ? AND day = ?", (key, day))
        return int(found[0][0]) if found else 0

    def _spent(self, person: str) -> int:
        found = self.run("SELECT spent FROM people WHERE person = ?", (person,))
        return int(found[0][0]) if found else 0

    # --- keys ---------------------------------------------------------------------------------------------------
    def add_key(self, name: str, role: str) -> str:
        """A new key, told once: only its hash is kept. Keys are 256 random bits, so a plain hash cannot be searched."""
        if role not in ROLES:
            raise InputError(f"a role is one of {', '.join(ROLES)}; found {role!r}.")
        _check_name(name)
        key = "veil_" + secrets.token_urlsafe(32)
        with self.alone():
            if self.run("SELECT name FROM keys WHERE name = ?", (name,)):
                raise InputError(
                    f"there is a key called {name!r} already. Remove it first: veil serve key remove {name}"
                )
            self.run("INSERT INTO keys (name, digest, role) VALUES (?, ?, ?)", (name, digest_of(key), role))
        return key

    def remove_key(self, name: str) -> None:
        """It opens nothing any more."""
        _check_name(name)
        with self.alone():
            if not self.run("SELECT name FROM keys WHERE name = ?", (name,)):
                raise InputError(f"there is no key called {name!r}. See: veil serve key list")
            self.run("DELETE FROM keys WHERE name = ?", (name,))

    def keys(self) -> dict[str, tuple[str, str]]:
        """Name and role by hash."""
        return {
            row[0]: (row[1], row[2]) for row in self.run("SELECT digest, name, role FROM keys ORDER BY name")
        }


def _check_name(name: str) -> None:
    if not name or len(name) > 100 or not name.isprintable():
        raise InputError(f"a key has a name of 1 to 100 printable characters, found {name!a}.")


def millionths(amount: float, rounding: str) -> int:
    """A decimal number as a whole one: costs are rounded up, limits down; no limit is one that is never reached."""
    if math.isinf(amount):
        return 1 << 62
    return int((Decimal(str(amount)) * MILLION).to_integral_value(rounding))


def without_password(address: str) -> str:
    """An address that may be shown: a path as it is, a URL without name, password and settings."""
    scheme, there, rest = address.partition("://")
    if not there:
        return str(Path(address).resolve())
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def digest_of(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def open_store(address: str) -> Store:
    """A SQLite file by its path, or a PostgreSQL database by its URL; tables are made if they are not there."""
    store: Store
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from veilgraph.serve.postgres import PostgresStore
        except ImportError:
            raise MissingExtraError("a PostgreSQL store", "serve") from None
        store = PostgresStore(address)
    elif "://" in address:
        raise InputError(
            f"a store is a SQLite file or postgresql://…; found {address.partition('://')[0]}://…"
        )
    else:
        from veilgraph.serve.sqlite import SqliteStore

        store = SqliteStore(address)
    store.prepare()
    return store
