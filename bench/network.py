"""What the network adds: the same federation in one process and between processes (Flower over TLS on loopback), round by round.

Three clients by the commands a user would give. A round between processes is everything from the server's question to the last
answer; local training is what the clients' own traces say. The difference is Flower's: it starts a process for every message,
which imports PyTorch, reads the client's folder, and polls for its work.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from common import arguments, finish, median, say, settings
from federate import clients_of
from veilgraph.federate import federate, graphs_of
from veilgraph.files import read_lines

VEIL = [sys.executable, "-m", "veilgraph.cli", "federate"]


@contextmanager
def staying(*words: object) -> Iterator[dict[str, Any]]:
    """A command that goes on; what it said when it was ready."""
    process = subprocess.Popen([*VEIL, *map(str, words), "--json"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def between(folder: Path, graphs: dict[str, Path], terms: list[str]) -> None:
    """The federation between processes; runs in ``folder``/runs, the server in ``folder``/server."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    subprocess.run([*VEIL, "secret", str(folder / "secret")], check=True, stdout=subprocess.DEVNULL)
    keys: list[object] = []
    for name in graphs:
        subprocess.run([*VEIL, "key", str(folder / f"{name}.key")], check=True, stdout=subprocess.DEVNULL)
        keys += ["--client", folder / f"{name}.key.pub"]
    with ExitStack() as stack:
        facts = stack.enter_context(staying("serve", folder / "server", *keys, "--port", port))
        for name, graph in graphs.items():
            words = ["--name", name, "--graph", graph, "--key", folder / f"{name}.key", "--threads", 1]
            words += ["--ca", facts["certificate"], "--secret", folder / "secret"]
            stack.enter_context(staying("join", facts["address"], "--out", folder / "runs" / name, *words))
        subprocess.run(
            [
                *VEIL,
                "run",
                "--server",
                str(folder / "server"),
                *terms,
                "--clients",
                str(len(graphs)),
                "--json",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )


def local_seconds(folder: Path, rounds: int, each: int) -> list[float]:
    """What local epochs took in every round, the slowest client of each: between machines they train beside each other."""
    traces = [read_lines(path / "trace.jsonl") for path in sorted(folder.iterdir())]
    return [
        max(sum(t["seconds"] for t in trace[i * each : (i + 1) * each]) for trace in traces)
        for i in range(rounds)
    ]


def main(words: list[str] | None = None) -> dict[str, Any]:
    """Measure."""
    o = arguments(__doc__, clients=3, rounds=4, local_epochs=3, model="transe", dimension=128).parse_args(
        words
    )
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")  # clients share two cores here
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graphs = graphs_of(clients_of(folder / "clients", o.clients))
        terms = ["--rounds", o.rounds, "--local-epochs", o.local_epochs, "--validate-rounds", 0]
        terms += ["--model", o.model, "--dimension", o.dimension]
        say("between processes")
        between(folder, graphs, [str(word) for word in terms])
        rounds = [line["seconds"] for line in read_lines(folder / "server" / "server" / "trace.jsonl")]
        local = local_seconds(folder / "runs", o.rounds, o.local_epochs)
        say("in one process")
        federate(
            graphs,
            out=folder / "one",
            rounds=o.rounds,
            local_epochs=o.local_epochs,
            validate_every=0,
            own={"threads": 1},
            training={"model": o.model, "dimension": o.dimension},
        )
        one = [line["seconds"] for line in read_lines(folder / "one" / "server" / "trace.jsonl")]
    return finish(
        settings(clients=len(graphs), model=o.model, dimension=o.dimension)
        | {
            "round_seconds": round(median(rounds), 2),
            "slowest_client_seconds": round(median(local), 2),
            "overhead_seconds": round(median([a - b for a, b in zip(rounds, local)]), 2),
            "one_process_round_seconds": round(median(one), 2),
        }
    )


if __name__ == "__main__":
    main()
