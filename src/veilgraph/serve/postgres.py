"""The store in PostgreSQL, for several servers: one advisory lock, so one writer at a time among all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from veilgraph.errors import InputError
from veilgraph.serve.store import NAMES, Question, Settled, Store, without_password

LOCK = 0x7665696C  # «veil»


class PostgresStore(Store):
    """A connection that is made again when it was lost."""

    def __init__(self, url: str) -> None:
        self.url, self.inside = url, False
        try:
            self.connection = self._connect()
        except psycopg.Error as error:  # its words may repeat the password
            raise InputError(
                f"the PostgreSQL store {without_password(url)} cannot be reached ({type(error).__name__}). "
                "See that it runs, and that address, name and password are right."
            ) from None

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        connection = psycopg.connect(self.url, autocommit=True, connect_timeout=10)
        connection.execute("SET synchronous_commit = on")
        return connection

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self.connection.closed and not self.inside:
            self.connection = self._connect()
        done = self.connection.execute(sql.replace("?", "%s").encode(), values or None)
        return done.fetchall() if done.description else []

    def whole(self) -> bool:
        return all(self.run("SELECT to_regclass(?)", (name,))[0][0] is not None for name in NAMES)

    def begin(self) -> None:
        if self.connection.closed:
            self.connection = self._connect()
        self.connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        self.inside = True
        self.connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))

    def commit(self) -> None:
        self.inside = False
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        self.inside = False
        if not self.connection.closed:
            self.connection.execute("ROLLBACK")

    def settle(self, questions: Sequence[Question], limit: float) -> list[Settled]:
        """Once more if the connection was lost: what had been committed is found as answered, and charged once."""
        try:
            return super().settle(questions, limit)
        except psycopg.OperationalError:
            self.connection.close()
            return super().settle(questions, limit)

    def close(self) -> None:
        self.connection.close()
