"""The store in PostgreSQL, for several servers: one advisory lock, so one writer at a time among all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg

from veilgraph.errors import UnavailableError
from veilgraph.serve.store import Question, Settled, Store, without_password

LOCK = 0x7665696C  # «veil»
SETTINGS = (  # nobody waits for long, and no server that hangs holds the lock for ever
    "SET synchronous_commit = on",
    "SET lock_timeout = '3s'",
    "SET idle_in_transaction_session_timeout = '10s'",
    "SET statement_timeout = '10s'",
)
PAUSE = 0.5  # seconds between two attempts to reach it: nobody waits for one that was just made in vain


class PostgresStore(Store):
    """A connection that is made again when it was lost: a database that restarts is waited for, and nothing is charged twice."""

    def __init__(self, url: str) -> None:
        self.url, self.inside = url, False
        self.failed = -math.inf  # when it was tried in vain
        self.connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._there()

    def _there(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection; a new one where it was lost. Raises UnavailableError, at once where it was tried a moment ago."""
        if self.connection is not None and not self.connection.closed:
            return self.connection
        try:
            if time.monotonic() - self.failed < PAUSE:
                raise psycopg.OperationalError("a moment ago it could not be reached")
            self.connection = psycopg.connect(
                self.url, autocommit=True, connect_timeout=2, tcp_user_timeout=5000, keepalives_idle=10
            )
            for setting in SETTINGS:
                self.connection.execute(setting)
            return self.connection
        except psycopg.Error as error:  # its words may repeat the password
            if time.monotonic() - self.failed >= PAUSE:
                self.failed = time.monotonic()
            self._lost()
            raise UnavailableError(
                f"the PostgreSQL store {without_password(self.url)} cannot be reached ({type(error).__name__}). "
                "See that it runs, and that address, name and password are right."
            ) from None

    def _lost(self) -> None:
        """Let go of a connection that is no use: what was not committed is as if it had not been."""
        if self.connection is not None:
            with suppress(psycopg.Error):
                self.connection.close()
        self.connection, self.inside = None, False

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        for last in (False, True):
            inside = self.inside
            try:
                if inside and self.connection is None:
                    raise psycopg.OperationalError("the connection was lost")
                done = self._there().execute(sql.replace("?", "%s").encode(), values or None)
                return done.fetchall() if done.description else []
            except (psycopg.OperationalError, psycopg.InterfaceError):
                self._lost()
                if inside:
                    raise
                if last:
                    raise self._gone() from None
        raise AssertionError("the second time it returns or raises")

    def _gone(self) -> UnavailableError:
        return UnavailableError(f"the PostgreSQL store {without_password(self.url)} does not answer.")

    def columns(self, table: str) -> set[str]:
        sql = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
        return {str(row[0]) for row in self.run(sql, (table,))}

    def begin(self) -> None:
        connection = self._there()
        try:
            connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        except psycopg.Error:
            self._lost()
            raise
        self.inside = True

    def commit(self) -> None:
        self.inside = False
        try:
            self._there().execute("COMMIT")
        except psycopg.Error:
            self._lost()
            raise

    def rollback(self) -> None:
        self.inside = False
        if self.connection is not None and not self.connection.closed:
            try:
                self.connection.execute("ROLLBACK")
            except psycopg.Error:
                self._lost()

    def settle(
        self, questions: Sequence[Question], limit: float, key_limit: float = math.inf
    ) -> list[Settled]:
        """Once more if the connection was lost: what had been committed is found as answered, and charged once."""
        for last in (False, True):
            try:
                return super().settle(questions, limit, key_limit)
            except (psycopg.OperationalError, psycopg.InterfaceError):
                self._lost()
                if last:
                    raise self._gone() from None
            except psycopg.InternalError:  # (a server that only reads just now)
                self._lost()
                raise self._gone() from None
        raise AssertionError("the second time it returns or raises")

    def close(self) -> None:
        self._lost()
