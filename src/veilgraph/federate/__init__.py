"""Institutions learn together: ``federate("clients/", out="federation/", rounds=40)``.

terms        what is agreed on · names: names as tokens under a secret · divide, groups: a graph for several clients
member       a client without any network · protocols: how its test statements are ranked
coordinator  the server without any network · strategies: which rows are shared, one file each
together     all data in one place, the baseline
messages     what goes over the wire · client_app, server: both sides on Flower · grid: all in one process
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilgraph.errors import InputError, MissingExtraError, UsageError
from veilgraph.run_files import METRICS
from veilgraph.runs import Run

if TYPE_CHECKING:
    from veilgraph.federate.server import Progress

SERVER, CLIENTS, SECRET = "server", "clients", "secret.key"
TOGETHER = "together"  # no federation: all data in one place


def graphs_of(source: str | Path) -> dict[str, Path]:
    """The clients' graphs by name: the folders in a folder."""
    path = Path(source)
    if not path.is_dir():
        raise InputError(f"{path} is no folder: a federation has a folder with a folder for each client.")
    found = {one.name: one for one in sorted(path.iterdir()) if one.is_dir() and not one.name.startswith(".")}
    if not found:
        raise InputError(
            f"{path} has no folders: make some with veil federate split GRAPH --clients 3 --out {path}"
        )
    return found


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
    from veilgraph.federate.names import new_secret
    from veilgraph.federate.terms import Terms

    graphs = dict(source) if isinstance(source, Mapping) else graphs_of(source)
    folder = Path(out)
    if terms.get("strategy") == TOGETHER:
        from veilgraph.federate.together import together

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


def client_summary(
    name: str, figures: dict[str, Any], epsilon: float | None, guarantee: str
) -> dict[str, Any]:
    """What ``veil federate run --json`` says about one client."""
    mrr, labels = figures.get("shared", {}).get("mrr"), figures.get("labels")
    said = {"name": name, "mrr": mrr, "epsilon": epsilon, "guarantee": guarantee, "protocols": figures}
    return said if labels is None else {**said, "accuracy": labels["accuracy"]}


def summary(strategy: str, rounds: int, clients: list[dict[str, Any]]) -> dict[str, Any]:
    """What ``veil federate run --json`` says: every client's figures, and their means by queries, under both protocols."""
    from veilgraph.federate.protocols import PROTOCOLS

    weights = [one["protocols"].get("shared", {}).get("queries", 0) for one in clients]
    whole = sum(weights)

    def mean(protocol: str, key: str) -> float | None:
        found = [one["protocols"].get(protocol, {}).get(key) for one in clients]
        if not whole or any(value is None for value in found):
            return None
        return sum(value * weight for value, weight in zip(found, weights)) / whole

    return {
        "strategy": strategy,
        "rounds": rounds,
        "clients": clients,
        "mrr": mean("shared", "mrr"),
        "protocol": "shared",
        "protocols": {p: {k: mean(p, k) for k in ("mrr", "hits@1", "hits@10")} for p in PROTOCOLS},
        **(
            {"accuracy": sum(one["accuracy"] for one in clients) / len(clients)}
            if all("accuracy" in one for one in clients)
            else {}
        ),
    }
