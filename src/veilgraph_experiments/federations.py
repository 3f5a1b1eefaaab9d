"""What experiments on federations measure; each has the folder of its job, where an interrupted one goes on."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from veilgraph.load import Graph, save
from veilgraph.load.labels import read_labels, write_labels


def _clients(graph: Graph, more: Mapping[str, Any]) -> dict[str, Path]:
    """The graph divided, a saved folder for each client."""
    from veilgraph.federate.divide import divide

    folder = Path(more["folder"]) / "graphs"
    wanted = {f"client{number}": folder / f"client{number}" for number in range(more["clients"])}
    if not all(path.is_dir() for path in wanted.values()):
        if "labels" in more:
            _with_labels(graph, more, wanted)
            return wanted
        for name, part in divide(graph, more["clients"], by=more["by"], seed=more["seed"]).items():
            if not wanted[name].is_dir():
                save(part, wanted[name])
    return wanted


def _with_labels(graph: Graph, more: Mapping[str, Any], wanted: Mapping[str, Path]) -> None:
    """As the thesis divides: by types, or by groups where there are none."""
    from veilgraph.federate.groups import overlapping

    parts = overlapping(
        graph, read_labels(graph), more["clients"], types=more["labels"]["types"], seed=more["seed"]
    )
    for name, (part, words) in parts.items():
        made = wanted[name].with_name(f".{name}")
        save(part, made, force=True)
        write_labels(part, words, made)
        if not wanted[name].is_dir():
            made.rename(wanted[name])


def federation(run: None, graph: Graph, more: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of all clients under both protocols; ``strategy`` may be alone or together."""
    from veilgraph.federate import federate

    found = federate(
        _clients(graph, more),
        out=Path(more["folder"]) / "federation",
        own={"threads": 1, "seed": more["seed"], **more["own"]},
        seed=more["seed"],
        **more["terms"],
    )
    spent = [one["epsilon"] for one in found["clients"]]
    return {
        "clients": found["clients"],
        "protocols": found["protocols"],
        "epsilon": max(spent) if all(value is not None for value in spent) else None,
        "guarantee": found["clients"][0]["guarantee"],
        "accuracy": found.get("accuracy"),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def counts(run: None, graph: Graph, more: Mapping[str, Any]) -> dict[str, Any]:
    """Every client's noisy counts as they are released, by themselves: what a federation under a promise must be better than."""
    from veilgraph.federate.protocols import judge
    from veilgraph.federate.summaries import client_summary, summary
    from veilgraph.load import load
    from veilgraph_experiments.raw_counts import raw_counts

    parts = {name: load(path) for name, path in _clients(graph, more).items()}
    everybody = {name for part in parts.values() for name in part.entities}
    epsilon, clients = more["own"]["epsilon"], []
    for name, part in parts.items():
        model, p = raw_counts(part, part.train, epsilon, more["own"]["delta"])
        strangers = torch.zeros(len(everybody) - len(part.entities), p.entities.shape[1])
        figures = judge(model, p, part, reciprocal=False, others=strangers)
        clients.append(client_summary(name, figures, epsilon, "dp"))
    return {**summary("counts", 1, clients), "epsilon": epsilon, "guarantee": "dp"}


def listening(run: None, graph: Graph, more: Mapping[str, Any]) -> dict[str, Any]:
    """What attackers make of a federation that was listened to, by kind of attack; and its figures."""
    from veilgraph.attack.federated import federated, listen

    clients = _clients(graph, more)
    folder = Path(more["folder"]) / "federation"
    found = listen(
        next(iter(clients.values())).parent,
        out=folder,
        victim="client0",
        attacker="client1",
        own={"threads": 1, **more["own"]},
        seed=more["seed"],
        active=more["active"],
        every=more["every"],
        count=more["targets"],
        **more["terms"],
    )
    kinds = ("active",) if more["active"] else ("server", "passive", "collusion", "published")
    return {
        "protocols": found["protocols"],
        "epsilon": found["clients"][0]["epsilon"],
        "attacks": {kind: federated(folder, kind, seed=more["seed"]) for kind in kinds},
    }
