"""The store in one file: SQLite with a write-ahead log, synced at every commit."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from veilgraph.errors import InputError
from veilgraph.serve.store import NAMES, Store

PATIENCE = 30.0  # seconds to wait for another writer


class SqliteStore(Store):
    """For one machine; several processes may share it."""

    def __init__(self, path: str) -> None:
        place = Path(path)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.close(
                os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
            )  # for its owner only, from the first moment
            self.connection = sqlite3.connect(
                place, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            self.place, self.file = place, _identity(place)
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute("PRAGMA synchronous=FULL")
            self.connection.execute(
                "PRAGMA wal_autocheckpoint=10000"
            )  # pages: rarely, for it makes somebody wait
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{path} cannot be used as a store: {error}.") from None

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise InputError(f"the store {self.place} cannot be used: {error}.") from None

    def whole(self) -> bool:
        found = {row[0] for row in self.run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return set(NAMES) <= found

    def begin(self) -> None:
        if _identity(self.place) != self.file:
            raise InputError(
                f"the store {self.place} was removed or replaced: what was spent is not known. Start again."
            )
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()


def _identity(place: Path) -> tuple[int, int] | None:
    """Which file it is, by whatever name."""
    try:
        found = place.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
