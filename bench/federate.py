"""What federating costs: a round beside the sum of its local trainings, and the memory of ten clients in one process.

FB15k-237 in ten clients where the data is at hand (a made-up hospital divided by ten elsewhere), TransE, dimension 128. A round is
everything: messages, local epochs, checkpoints of every client and of the server. Local training is what the clients' own
traces say their epochs took.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, finish, median, peak_memory, say, settings
from veilgraph.federate import federate, graphs_of
from veilgraph.federate.divide import divide
from veilgraph.files import read_lines
from veilgraph.load import load, save, split
from veilgraph.load.datasets import data_folder


def clients_of(folder: Path, count: int) -> Path:
    """A folder of clients' graphs."""
    there = data_folder() / f"fb15k-237-fedlu-r{count}"
    if there.is_dir():
        return there
    hospital = split(load("builtin:hospital", patients=4000))
    for name, graph in divide(hospital, count, by="random").items():
        save(graph, folder / name)
    return folder


def main(words: list[str] | None = None) -> dict[str, Any]:
    """Measure."""
    options = arguments(
        __doc__, clients=10, rounds=4, local_epochs=3, model="transe", dimension=128
    ).parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = clients_of(folder / "clients", options.clients)
        say(f"{len(graphs_of(source))} clients from {source.name}")
        found = federate(
            source,
            out=folder / "f",
            rounds=options.rounds,
            local_epochs=options.local_epochs,
            validate_every=0,
            training={"model": options.model, "dimension": options.dimension},
            listener=lambda progress: say(f"round {progress.round}"),
        )
        rounds = [line["seconds"] for line in read_lines(folder / "f" / "server" / "trace.jsonl")]
        traces = [read_lines(path / "trace.jsonl") for path in sorted((folder / "f" / "clients").iterdir())]
        each = options.local_epochs
        local = [
            sum(line["seconds"] for trace in traces for line in trace[i * each : (i + 1) * each])
            for i in range(options.rounds)
        ]
        result = settings(
            clients=options.clients, model=options.model, dimension=options.dimension, data=source.name
        )
        result |= {
            "round_seconds": round(median(rounds), 3),
            "local_seconds": round(median(local), 3),
            "round_over_local": round(median([a / b for a, b in zip(rounds[1:], local[1:])]), 3),
            "peak_memory_mb": round(peak_memory() / 2**20),
            "mrr": found["mrr"],
        }
        say(json.dumps(result))
    return finish(result)


if __name__ == "__main__":
    main()
