"""A federation between machines: Flower's SuperLink and SuperNodes as processes of ours, over TLS, every node with its key.

Telemetry, looking for updates and installing anything at run time are off. A SuperNode starts a process for every message
(Flower's isolation), so a round costs some seconds more than in one process; clients keep all they need on disk.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veilgraph.errors import InputError, RunError, UsageError
from veilgraph.federate import guardian
from veilgraph.federate.coordinator import SEATS, nothing_sent
from veilgraph.federate.keys import certificates, check_certificate, check_key
from veilgraph.federate.names import read_secret
from veilgraph.federate.terms import Terms
from veilgraph.files import read_lines, write_json, write_text

LINK = "veil"
STOPPED = (0, 128 + signal.SIGTERM, 128 + signal.SIGINT, 128 + signal.SIGHUP)  # as somebody wished
WHY = {  # a sign in Flower's log, and what it means
    "certificate verify failed": "{certificate} did not sign the certificate of {address}: ask whoever runs the server for its tls/ca.pem.",
    "Failed to activate SuperNode": "{address} does not know this key. Whoever runs the server lets you in with: veil federate serve DIR "
    "--client {key}.pub",
    "Connection refused": "nobody answers at {address}. Is the server running, and is the address right?",
    "Name or service not known": "there is no machine called {address}.",
}
OVER = "over.json"  # in the server's folder: written by its app when all rounds are done, or why not
STARTING = 60.0  # seconds for a SuperLink to answer
NODES, RUN = "nodes.json", "run.json"  # who may join; what a run is, for the server's own app (see own_apps)
COMMANDS = ("serverapp", "clientapp", "simulation", "agentapp", "model", "connector")  # what Flower starts
APP = """[project]
name = "veilgraph-federation"
version = "1.0.0"
description = "Nothing of this is run: see federate/own_apps.py"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "veilgraph"

[tool.flwr.app.components]
serverapp = "veilgraph.federate.server_app:app"
clientapp = "veilgraph.federate.client_app:app"

[tool.flwr.app.config]
"""


def serve(
    folder: str | Path, clients: Sequence[str | Path], *, host: str, port: int
) -> Iterator[dict[str, Any]]:
    """Run a SuperLink for these clients (their public keys); yields its facts once it answers, then waits until it ends."""
    place = Path(folder).resolve()
    for key in clients:
        if not Path(key).is_file():
            raise InputError(
                f"there is no key {key}: a client makes one with veil federate key FILE, and gives you FILE.pub."
            )
    _require_free(host, port)
    ca, certificate, own = certificates(place / "tls", host)
    (place / "home").mkdir(parents=True, exist_ok=True)
    address = f"{host}:{port}"
    link = {"address": address, "root-certificates": str(ca)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in link.items()]
    write_text(
        place / "home" / "config.toml",
        "\n".join([f'[superlink]\ndefault = "{LINK}"\n', f"[superlink.{LINK}]", *lines, ""]),
    )
    words: list[object] = [
        "flower-superlink",
        "--ssl-ca-certfile",
        ca,
        "--ssl-certfile",
        certificate,
        "--ssl-keyfile",
        own,
    ]
    words += ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
    words += ["--host", host, "--port", port, "--database", place / "link.sqlite"]
    _only_ours(place / "home", "serverapp", place / RUN)
    with _process(words, place / "home", place / "link.log") as process:
        _wait_for(process, host, port, place / "link.log")
        known = json.loads((place / NODES).read_text(encoding="utf-8")) if (place / NODES).exists() else {}
        for key in clients:
            text = Path(key).read_text(encoding="utf-8").strip()
            if text not in known:
                known[text] = _register(Path(key), place / "home")
                write_json(place / NODES, known, mode=0o600)
        yield {"address": address, "certificate": str(ca), "clients": len(clients), "folder": str(place)}
        if process.wait() not in STOPPED:
            raise RunError(f"the server stopped: {_last_words(place / 'link.log')}")


def join(
    address: str,
    folder: str | Path,
    *,
    name: str,
    graph: str | Path,
    key: str | Path,
    certificate: str | Path,
    secret: str | Path,
    own: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """Run a SuperNode: a client that answers the server until it is stopped; yields its facts, then waits.

    Reads confidential data: through the client's plan, when the server asks for rounds. Releases: rows, as its certificate says.
    """
    for what, path in (("graph", graph), ("key", key), ("certificate", certificate)):
        if not Path(path).exists():
            raise InputError(f"there is no {what} {path}.")
    read_secret(secret)
    check_key(key)
    check_certificate(certificate, address)
    place = Path(folder).resolve()
    home = place.parent / f".{place.name}-node"
    home.mkdir(parents=True, exist_ok=True)
    about = {"name": name, "graph": str(Path(graph).resolve()), "folder": str(place)}
    about |= {"secret": str(Path(secret).resolve()), "own": json.dumps(own)}
    write_json(home / "node.json", about, mode=0o600)
    words: list[object] = ["flower-supernode", "--root-certificates", certificate, "--superlink", address]
    words += ["--auth-supernode-private-key", key, "--node-config", f'config="{home / "node.json"}"']
    words += ["--host", "127.0.0.1", "--port", _free_port()]
    _only_ours(home, "clientapp")
    begins = (home / "node.log").stat().st_size if (home / "node.log").exists() else 0
    with _process(words, home, home / "node.log") as process:
        yield {"server": address, "name": name, "run": str(place), "log": str(home / "node.log")}
        if process.wait() not in STOPPED:
            raise RunError(
                f"the client stopped: {_why(home / 'node.log', begins, address, certificate, key)}"
            )


def run(
    folder: str | Path, terms: Terms, clients: int, *, patience: float = 600.0, waiting: float = 600.0
) -> Iterator[dict[str, Any]]:
    """Have the SuperLink that ``serve`` runs in this folder carry out a federation; yields who sends nothing, then the trace."""
    place = Path(folder).resolve()
    if not (place / "home" / "config.toml").is_file():
        raise UsageError(
            f"{place} is not the folder of a server. Start one with: veil federate serve {folder} --client KEY.pub"
        )
    (place / "server").mkdir(parents=True, exist_ok=True)
    (place / "server" / OVER).unlink(missing_ok=True)
    nodes = list(json.loads((place / NODES).read_text(encoding="utf-8")).values())
    given = {"folder": str(place / "server"), "clients": clients, "terms": terms.text(), "nodes": nodes}
    write_json(place / RUN, given | {"patience": float(patience), "waiting": float(waiting)}, mode=0o600)
    (place / "app").mkdir(exist_ok=True)
    write_text(place / "app" / "pyproject.toml", APP)
    told = _flwr(["run", str(place / "app"), LINK, "--format", "json"], place / "home")
    number = str(told["run-id"])
    seen, looked, told_idle = len(read_lines(place / "server" / "trace.jsonl")), time.monotonic(), False
    while True:
        if not told_idle and (place / "server" / SEATS).exists():
            about, told_idle = json.loads((place / "server" / SEATS).read_text(encoding="utf-8")), True
            words = nothing_sent(about.get("idle", ()), len(about["active"]))
            if words is not None:
                yield {"note": words}
        lines = read_lines(place / "server" / "trace.jsonl")
        yield from lines[seen:]
        seen = len(lines)
        if (place / "server" / OVER).exists():
            over = json.loads((place / "server" / OVER).read_text(encoding="utf-8"))
            if "error" in over:
                raise RunError(f"the federation stopped: {over['error']}")
            yield over
            return
        if time.monotonic() - looked > 20:
            looked = time.monotonic()
            found = _flwr(["list", LINK, "--run-id", number, "--format", "json"], place / "home")
            status = str(found["runs"][0]["status"]) if found.get("runs") else "unknown"
            if status.startswith("finished") and not (place / "server" / OVER).exists():
                raise RunError(
                    f"the federation stopped ({status}). See {place / 'link.log'}; running again continues it."
                )
        time.sleep(0.5)


# --- processes ----------------------------------------------------------------------------------------------------
def _environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": os.pathsep.join(
            [str(home / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        ),
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "NO_COLOR": "1",
    }


@contextmanager
def _process(words: Sequence[object], home: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with all that it starts; they end together when this ends, however it ends (see ``guardian``)."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", guardian.__file__, *(str(word) for word in words)],
            env=_environment(home),
            stdin=subprocess.PIPE,  # closed when we end
            umask=0o077,  # what Flower keeps is nobody else's
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(guardian.GRACE + 8)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], host: str, port: int, log: Path) -> None:
    ends = time.monotonic() + STARTING
    while time.monotonic() < ends:
        if process.poll() is not None:
            raise InputError(f"the server did not start: {_last_words(log)}")
        try:
            socket.create_connection((host, port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise InputError(f"the server did not answer at {host}:{port} in {STARTING:g} s. See {log}.")


def _register(key: Path, home: Path) -> int:
    """Let the owner of a key join; the number of its node."""
    told = _flwr(["supernode", "register", str(key), LINK, "--format", "json"], home, check=False)
    if not told.get("success") or "node-id" not in told:
        raise InputError(f"{key} cannot be registered: {told.get('error-message', told.get('error', told))}")
    return int(told["node-id"])


def _only_ours(home: Path, command: str, config: Path | None = None) -> None:
    """What Flower finds under the names of the processes it starts: our own app for one, and for the others nothing that runs."""
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        path = home / "bin" / f"flwr-{name}"
        lines = [f"#!{sys.executable}", "import sys"]
        if name == command:
            lines += ["import os", f"os.environ['VEILGRAPH_FEDERATION'] = {str(config)!r}"] if config else []
            lines += [f"from veilgraph.federate.own_apps import {command}", f"sys.exit({command}())"]
        else:
            lines.append(f"sys.exit('flwr-{name} is not run here')")
        write_text(path, "\n".join([*lines, ""]), mode=0o700)


def _flwr(words: list[str], home: Path, *, check: bool = True) -> dict[str, Any]:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("flwr")), *words],
        env=_environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    begins = done.stdout.find("{")
    try:
        told = dict(json.loads(done.stdout[begins:])) if begins >= 0 else {}
    except ValueError:
        told = {}
    if check and (done.returncode or told.get("success") is False or not told):
        why = told.get("error-message") or done.stderr.strip().splitlines()[-1:] or done.stdout.strip()[-300:]
        raise RunError(f"Flower did not do «{words[0]}»: {why}")
    return told or {"error": done.stdout.strip()[-300:] + done.stderr.strip()[-300:]}


def _require_free(host: str, port: int) -> None:
    """Raise if somebody answers there already, perhaps an earlier server: clients would talk to that one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
        except (OSError, OverflowError) as error:
            raise InputError(
                f"{host}:{port} cannot be listened on ({error}): another server may run there. Stop it, or choose another --port."
            ) from None


def _why(log: Path, begins: int, address: str, certificate: str | Path, key: str | Path) -> str:
    """Why a client could not join, in our words where Flower's are known."""
    try:
        with log.open("rb") as file:
            file.seek(begins)
            said = file.read().decode("utf-8", "replace")
    except OSError:
        said = ""
    for sign, words in WHY.items():
        if sign.lower() in said.lower():
            return f"{words.format(address=address, certificate=certificate, key=key)} (see {log})"
    return _last_words(log)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _last_words(log: Path) -> str:
    try:
        lines = [
            line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()
        ]
    except OSError:
        lines = []
    return f"{lines[-1][-300:] if lines else 'nothing was said'} (see {log})"
