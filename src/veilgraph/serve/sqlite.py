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
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute("PRAGMA synchronous=FULL")
            self.connection.execute(
                "PRAGMA wal_autocheckpoint=10000"
            )  # pages: rarely, for it makes somebody wait
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{path} cannot be used as a store: {error}.") from None

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, values).fetchall()

    def whole(self) -> bool:
        found = {row[0] for row in self.run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return set(NAMES) <= found

    def begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()
