"""A federation for tests: in one process, with a way to look into or change what clients answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Message

from veilgraph.federate.client_app import app, kept
from veilgraph.federate.grid import LocalGrid
from veilgraph.federate.names import new_secret
from veilgraph.federate.server import Server
from veilgraph.federate.terms import Terms
from veilgraph.run.run import Run

TRAINING = {"model": "distmult", "dimension": 16, "candidates": "sampled"}


class Federation:
    """A server and clients in one process, with a way to look into or change what clients answer."""

    def __init__(self, clients: Path, folder: Path, change: Any = None, **terms: Any) -> None:
        self.folder, self.change = folder, change
        folder.mkdir(exist_ok=True)
        if not (folder / "secret").exists():
            new_secret(folder / "secret", 0)
        self.terms = Terms(**{"rounds": 3, "local_epochs": 1, "training": TRAINING} | terms)
        self.nodes = [
            {
                "name": one.name,
                "graph": str(one),
                "folder": str(folder / one.name),
                "secret": str(folder / "secret"),
                "own": "{}",
            }
            for one in sorted(clients.iterdir())
        ]

    def run(self, tell: Any = None) -> Server:
        kept.clear()
        grid = LocalGrid(self._answer, self.nodes)  # type: ignore[arg-type]
        server = Server(grid, self.terms, self.folder / "server", len(self.nodes), waiting=1.0, tell=tell)
        server.run()
        return server

    def _answer(self, message: Message, context: Any) -> Message:
        reply = app(message, context)
        return self.change(message, reply, context.node_config["name"]) if self.change else reply

    @property
    def trace(self) -> list[dict[str, Any]]:
        return [
            json.loads(line) for line in (self.folder / "server" / "trace.jsonl").read_text().splitlines()
        ]


def rows_of(folder: Path) -> dict[str, np.ndarray]:
    return {one.name: Run.open(one).parameters.entities.numpy() for one in sorted(folder.glob("client*"))}
