"""What we start ends when we do, however we end; and what a federation's server and clients say when they cannot work."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from veilgraph.cli import main
from veilgraph.federate import guardian

pytest.importorskip("flwr")


def until(condition: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it does not happen"
        time.sleep(0.1)


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look into")
@pytest.mark.parametrize("how", ["starter killed", "guardian killed", "told to stop"])
def test_nothing_outlives_its_starter(how: str, tmp_path: Path) -> None:
    """A command that starts another in a session of its own, as Flower does."""
    script = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}} \\n')\n"
        "time.sleep(600)\n"
    )
    starter = (
        "import subprocess, sys, time\n"
        f"guarded = subprocess.Popen([sys.executable, '-P', {guardian.__file__!r}, sys.executable, '-c', {script!r}], "
        "stdin=subprocess.PIPE, start_new_session=True)\n"
        "print(guarded.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        keeper = int(process.stdout.readline())
        until(lambda: (tmp_path / "pids").exists() and "\n" in (tmp_path / "pids").read_text(), 20)
        command, below = map(int, (tmp_path / "pids").read_text().split())
        assert not gone(command)
        assert not gone(below)
        if how == "starter killed":
            process.kill()
        elif how == "guardian killed":
            os.kill(keeper, signal.SIGKILL)
        else:
            os.kill(keeper, signal.SIGTERM)
        until(lambda: gone(command), 20)
        if (
            how != "guardian killed"
        ):  # (who kills the guardian takes what the command itself started with it, by hand)
            until(lambda: gone(below), 20)
        elif not gone(below):
            os.kill(below, signal.SIGKILL)
        process.kill()


def test_a_server_that_is_killed_leaves_its_port(tmp_path: Path) -> None:
    """And the next one says so where it does not."""
    assert main(["federate", "key", str(tmp_path / "a.key")]) == 0
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    words = [
        "federate",
        "serve",
        str(tmp_path / "server"),
        "--client",
        str(tmp_path / "a.key.pub"),
        "--port",
        str(port),
    ]
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen([sys.executable, "-m", "veilgraph.cli", *words], stdout=log, stderr=log)
    try:
        until(lambda: (tmp_path / "server" / "nodes.json").exists() or process.poll() is not None, 90)
        assert process.poll() is None, (tmp_path / "log").read_text()
        assert main([*words[:2], str(tmp_path / "other"), *words[3:]]) == 3
        for name in ("link.sqlite", "link.log"):
            assert not (tmp_path / "server" / name).stat().st_mode & 0o077, name
    finally:
        process.kill()
        process.wait()
        log.close()
    until(lambda: not answers(port), 25)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return False
    return True


def test_clients_are_refused_in_our_words(
    hospital: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", "builtin:hospital", "--patients", "20", "--out", str(tmp_path / "g")]) == 0
    assert main(["federate", "secret", str(tmp_path / "s")]) == 0
    assert main(["federate", "key", str(tmp_path / "k")]) == 0
    (tmp_path / "ca.pem").write_text("no certificate")
    base = {"graph": "g", "name": "one", "key": "k", "ca": "ca.pem", "secret": "s", "out": "out"}
    for change, wanted in (
        ({"key": "k.pub"}, "is no private key"),
        ({"key": "s"}, "is no private key"),
        ({}, "is no certificate"),
    ):
        given = [
            word
            for k, v in (base | change).items()
            for word in (f"--{k}", v if k == "name" else str(tmp_path / v))
        ]
        capsys.readouterr()
        assert main(["federate", "join", "127.0.0.1:1", *given]) == 3
        assert wanted in capsys.readouterr().err
    given = [word for k, v in base.items() for word in (f"--{k}", v if k == "name" else str(tmp_path / v))]
    assert main(["federate", "join", "nowhere", *given]) == 3
    assert "HOST:PORT" in capsys.readouterr().err
