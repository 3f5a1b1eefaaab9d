"""Institutions learn together, in one process: ``federate("clients/", out="federation/", rounds=40)``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilgraph.errors import MissingExtraError, UsageError
from veilgraph.federate.names import new_secret
from veilgraph.federate.places import CLIENTS, SECRET, SERVER, graphs_of
from veilgraph.federate.summaries import client_summary, summary
from veilgraph.federate.terms import Terms
from veilgraph.federate.together import together
from veilgraph.layout import METRICS
from veilgraph.run.run import Run

if TYPE_CHECKING:
    from veilgraph.federate.server import Progress

TOGETHER = "together"  # no federation: all data in one place


def federate(
    source: str | Path | Mapping[str, str | Path],
    *,
    out: str | Path,
    own: Mapping[str, Any] | None = None,
    listener: Callable[[Progress], None] | None = None,
    tell: Callable[[str], None] | None = None,
    app: Any = None,
    **terms: Any,
) -> dict[str, Any]:
    """A federation in one process: every client's run folder in ``out``/clients, the server's in ``out``/server.

    ``source`` is a folder of graphs, or graphs by name; ``own`` is what every client says about its own data (epsilon, delta,
    mechanism, …), the rest are fields of terms.Terms; ``app`` stands in for the clients' app (attack/federated listens so).
    An interrupted federation goes on. Clients that take no step send nothing and are not averaged in; ``tell`` is told so first.

    Reads confidential data: every client's, through its own plan. Releases: what each client's certificate says; the
    figures that are returned are the clients'.
    """
    try:
        from veilgraph.federate import client_app
        from veilgraph.federate.grid import LocalGrid
        from veilgraph.federate.server import Server
    except ImportError:
        raise MissingExtraError("veil federate", "federate") from None
    graphs = dict(source) if isinstance(source, Mapping) else graphs_of(source)
    folder = Path(out)
    if terms.get("strategy") == TOGETHER:
        agreed = Terms(**{**terms, "strategy": "alone"})
        found = together(graphs, folder, agreed, own or {})
        return summary(
            TOGETHER, agreed.rounds, [client_summary(name, found[name], None, "none") for name in graphs]
        )
    agreed = Terms(**terms)
    if app is None and folder.exists() and any(folder.iterdir()) and not (folder / SECRET).exists():
        raise UsageError(f"{folder} exists already and is not a federation. Choose another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / SECRET).exists():
        new_secret(folder / SECRET, agreed.seed)
    nodes = [
        {
            "name": name,
            "graph": str(graph),
            "folder": str(folder / CLIENTS / name),
            "secret": str(folder / SECRET),
            "own": json.dumps(dict(own or {})),
        }
        for name, graph in graphs.items()
    ]
    grid = LocalGrid(app or client_app.app, nodes)
    done = Server(grid, agreed, folder / SERVER, len(nodes), listener=listener, tell=tell).run()
    runs = {name: Run.open(folder / CLIENTS / name) for name in graphs}
    clients = [client_summary(name, _figures(run), run.epsilon, run.guarantee) for name, run in runs.items()]
    return {**summary(agreed.strategy, done.round, clients), "idle": done.idle}


def _figures(run: Run) -> dict[str, Any]:
    path = run.folder / METRICS
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
