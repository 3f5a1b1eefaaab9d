"""veil list models|encoders|mechanisms|guarantees|attacks|sanitisers|strategies|losses|optimisers|readers|mappings|formats|…"""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.registry import available

KINDS = (
    "models",
    "encoders",
    "mechanisms",
    "guarantees",
    "attacks",
    "sanitisers",
    "strategies",
    "losses",
    "optimisers",
    "readers",
    "mappings",
    "formats",
    "datasets",
    "experiments",
    "settings",
)


ATTACKS = (
    (
        "membership",
        "veil attack membership RUN",
        "Was this statement in the graph? Real members against real non-members.",
    ),
    ("attribute", "veil attack attribute RUN", "What do recommendation lists tell about a hidden attribute?"),
    (
        "federated",
        "veil attack federated FOLDER",
        "What do a federation's messages tell a server, a client, or both?",
    ),
    (
        "audit",
        "veil audit RUN",
        "Does the claimed ε hold? Canaries in one more training, a lower bound on ε.",
    ),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("kind", choices=KINDS)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Look around."""
    return {"kind": options.kind, "items": globals()[f"_{options.kind}"]()}


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import table

    items = result["items"]
    columns = list(items[0]) if items else ["name"]
    table(columns, [[item[c] for c in columns] for item in items])


def _models() -> list[dict[str, Any]]:
    found = [
        {"name": n, "formula": m.formula, "citation": m.citation} for n, m in available("models").items()
    ]
    return [*found, {"name": "pykeen:NAME", "formula": "any PyKEEN interaction", "citation": "extra: pykeen"}]


def _encoders() -> list[dict[str, Any]]:
    return [
        {
            "name": n,
            "what": _first(e),
            "vectors": e.usual,
            "private": "no" if e.layers else "yes",
        }
        for n, e in available("encoders").items()
    ]


def _mechanisms() -> list[dict[str, Any]]:
    return [
        {"name": n, "what": _first(m), "guarantee": m.guarantee} for n, m in available("mechanisms").items()
    ]


def _strategies() -> list[dict[str, Any]]:
    found = [{"name": n, "what": _first(s)} for n, s in available("strategies").items()]
    return [*found, {"name": "together", "what": "No federation: one training on everybody's statements."}]


def _guarantees() -> list[dict[str, Any]]:
    return [
        {"name": n, "protects": str(g.__doc__).rstrip("."), "how": g.mechanism}
        for n, g in available("guarantees").items()
    ]


def _attacks() -> list[dict[str, Any]]:
    return [{"name": name, "what": what, "command": command} for name, command, what in ATTACKS]


def _sanitisers() -> list[dict[str, Any]]:
    return [{"name": n, "what": _first(s), "promise": s.promise} for n, s in available("sanitisers").items()]


def _losses() -> list[dict[str, Any]]:
    return [{"name": name, "formula": _first(loss)} for name, loss in available("losses").items()]


def _optimisers() -> list[dict[str, Any]]:
    return [{"name": name, "what": _first(o)} for name, o in available("optimisers").items()]


def _readers() -> list[dict[str, Any]]:
    from veilgraph.load.source import readers

    return [{"name": r.name, "reads": _first(type(r)), "example": r.example} for r in readers()]


def _mappings() -> list[dict[str, Any]]:
    from veilgraph.load.mapping import find_mapping, shipped

    lines = {name: find_mapping(name).read_text(encoding="utf-8").splitlines()[0] for name in shipped()}
    return [{"name": name, "what": line.lstrip("# ")} for name, line in lines.items()]


def _formats() -> list[dict[str, Any]]:
    return [{"name": name, "what": _first(f)} for name, f in available("formats").items()]


def _datasets() -> list[dict[str, Any]]:
    from veilgraph.load.datasets import known

    return known()


def _experiments() -> list[dict[str, Any]]:
    from veilgraph_experiments import available

    return [{"name": name, "what": found.title} for name, found in available().items()]


def _settings() -> list[dict[str, Any]]:
    from veilgraph.config import TrainConfig

    return [
        {"name": key, "type": s.kind.__name__, "choices": " ".join(s.choices), "help": s.help}
        for key, s in TrainConfig.settings().items()
    ]


def _first(thing: Any) -> str:
    """The first paragraph of what something says about itself."""
    return " ".join(str(thing.__doc__).split("\n\n")[0].replace("``", "").split())
