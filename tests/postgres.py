"""A real PostgreSQL server for tests: started on loopback, gone afterwards; skipped with a reason where it cannot be."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


def _postgres_folder() -> Path | None:
    """Where PostgreSQL's own programs are; Debian keeps initdb out of the PATH."""
    found = [Path(p).parent for p in [shutil.which("initdb")] if p]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next(
        (folder for folder in found if (folder / "initdb").is_file() and (folder / "postgres").is_file()),
        None,
    )


@dataclass(frozen=True)
class Server:
    """A server that can be stopped and started again."""

    url: str
    words: list[str]  # pg_ctl and its data
    options: str
    user: str | None
    folder: Path

    def stop(self) -> None:
        """As a crash does: connections are cut."""
        self._run("-m", "immediate", "stop")

    def start(self) -> None:
        """And answer again."""
        self._run("-w", "-l", str(self.folder / "log"), "-o", self.options, "start")

    def _run(self, *words: str) -> None:
        subprocess.run(
            [*self.words, *words],
            user=self.user,
            capture_output=True,
            check=True,
            cwd=self.folder,
            timeout=60,
        )


@pytest.fixture
def postgres(postgres_server: Server) -> str:
    """Its address."""
    return postgres_server.url


@pytest.fixture
def postgres_server(tmp_path: Path) -> Iterator[Server]:
    """A server of our own: a fresh data folder, a free port on loopback, gone after the test."""
    programs = _postgres_folder()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")
    pytest.importorskip("psycopg")
    user: str | None = None
    data = tmp_path / "postgres"
    data.mkdir()
    if os.geteuid() == 0:  # the server refuses to run as root
        try:
            shutil.chown(data, "postgres", "postgres")
        except LookupError:
            pytest.skip("PostgreSQL does not run as root and there is no user postgres")
        for folder in [tmp_path, *tmp_path.parents]:
            if folder == Path("/"):
                break
            with contextlib.suppress(PermissionError):
                folder.chmod(folder.stat().st_mode | 0o011)
        user = "postgres"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(*words: str) -> None:
        done = subprocess.run(
            words, user=user, capture_output=True, text=True, check=False, cwd=data, timeout=60
        )
        if done.returncode:
            pytest.skip(f"PostgreSQL cannot be started here: {done.stderr.strip()[-300:]}")

    run(
        str(programs / "initdb"),
        "-D",
        str(data / "db"),
        "-U",
        "curator",
        "--auth=trust",
        "-E",
        "UTF8",
        "--no-sync",
    )
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    run(
        str(programs / "pg_ctl"),
        "-D",
        str(data / "db"),
        "-w",
        "-l",
        str(data / "log"),
        "-o",
        options,
        "start",
    )
    try:
        yield Server(
            f"postgresql://curator:secret@127.0.0.1:{port}/postgres",
            [str(programs / "pg_ctl"), "-D", str(data / "db")],
            options,
            user,
            data,
        )
    finally:
        subprocess.run(
            [str(programs / "pg_ctl"), "-D", str(data / "db"), "-m", "immediate", "stop"],
            user=user, capture_output=True, check=False, cwd=data,
        )  # fmt: skip
