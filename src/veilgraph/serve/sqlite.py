"""The store in one file: SQLite with a write-ahead log, synced at every commit."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from veilgraph.errors import InputError, UnavailableError
from veilgraph.serve.store import Store

PATIENCE = 5.0  # seconds to wait for another writer
TIDY = 256  # commits, after which the log is moved into the database, beside the work
LONGEST = 20_000  # pages of a log that a commit moves itself, while others wait: if tidying did not keep up


class SqliteStore(Store):
    """For one machine; several processes may share it."""

    def __init__(self, path: str) -> None:
        place = Path(path)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.close(
                os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
            )  # for its owner only, from the first moment
            _refuse_links(place)
            self.connection = _connect(place)
            self.place, self.file = place, _identity(place)
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute("PRAGMA synchronous=FULL")
            self.connection.execute(f"PRAGMA wal_autocheckpoint={LONGEST}")
            self._into_the_file()  # what a server that was killed left in the log
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{path} cannot be used as a store: {error}.") from None
        self.commits, self.tidier = 0, ThreadPoolExecutor(1, "tidy")

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise UnavailableError(f"the store {self.place} cannot be used: {error}.") from None

    def columns(self, table: str) -> set[str]:
        return {row[0] for row in self.run("SELECT name FROM pragma_table_info(?)", (table,))}

    def begin(self) -> None:
        if _identity(self.place) != self.file:
            raise InputError(
                f"the store {self.place} was removed or replaced: what was spent is not known. Start again."
            )
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.run("COMMIT")
        self.commits += 1
        if self.commits % TIDY == 0:
            self.tidier.submit(self._tidy)

    def _tidy(self) -> None:
        """Nobody waits for it, and nothing is lost if it fails: what is in the log is on disk already."""
        with suppress(sqlite3.Error), closing(_connect(self.place)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _into_the_file(self) -> None:
        """Move what is in the log into the database, as far as nobody still reads what was there before; others do not wait."""
        self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.tidier.shutdown(wait=True)
        with suppress(sqlite3.Error):  # (is in the log, on disk, where it fails)
            self._into_the_file()
        self.connection.close()


def _connect(place: Path) -> sqlite3.Connection:
    return sqlite3.connect(place, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def _refuse_links(place: Path) -> None:
    """Raise for a database of several names: its log goes by one of them, and by another what is in it would not be seen."""
    if (names := place.stat().st_nlink) > 1:
        raise InputError(
            f"{place} has {names} names (hard links), and what was spent is partly in a log that goes by one of them: by another, budgets "
            'would be spent again. Remove the other names, or make a copy: sqlite3 STORE ".backup COPY"'
        )


def _identity(place: Path) -> tuple[int, int] | None:
    """Which file it is, by whatever name."""
    try:
        found = place.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
