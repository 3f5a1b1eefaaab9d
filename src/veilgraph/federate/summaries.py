"""What a federation says of itself, client by client."""

from __future__ import annotations

from typing import Any

from veilgraph.federate.protocols import PROTOCOLS


def client_summary(
    name: str, figures: dict[str, Any], epsilon: float | None, guarantee: str
) -> dict[str, Any]:
    """What ``veil federate run --json`` says about one client."""
    mrr, labels = figures.get("shared", {}).get("mrr"), figures.get("labels")
    said = {"name": name, "mrr": mrr, "epsilon": epsilon, "guarantee": guarantee, "protocols": figures}
    return said if labels is None else {**said, "accuracy": labels["accuracy"]}


def summary(strategy: str, rounds: int, clients: list[dict[str, Any]]) -> dict[str, Any]:
    """What ``veil federate run --json`` says: every client's figures, and their means by queries, under both protocols."""
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
