"""veil list models|encoders|mechanisms|guarantees|attacks|sanitisers|strategies|losses|optimisers|readers|mappings|formats|…"""

from __future__ import annotations

import argparse
from typing import Any

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
    from veilgraph.models import available

    found = [{"name": n, "formula": m.formula, "citation": m.citation} for n, m in available().items()]
    return [*found, {"name": "pykeen:NAME", "formula": "any PyKEEN interaction", "citation": "extra: pykeen"}]


def _encoders() -> list[dict[str, Any]]:
    from veilgraph.models.text import available

    return [
        {
            "name": n,
            "what": str(e.__doc__).splitlines()[0],
            "vectors": e.usual,
            "private": "no" if e.layers else "yes",
        }
        for n, e in available().items()
    ]


def _mechanisms() -> list[dict[str, Any]]:
    from veilgraph.train.private.mechanisms import available

    return [{"name": n, "what": str(m.__doc__), "guarantee": m.guarantee} for n, m in available().items()]


def _strategies() -> list[dict[str, Any]]:
    from veilgraph.federate.strategies import available

    return [{"name": n, "what": str(s.__doc__)} for n, s in available().items()]


def _guarantees() -> list[dict[str, Any]]:
    from veilgraph.train.classify.guarantees import available

    return [
        {"name": n, "protects": str(g.__doc__).rstrip("."), "how": g.mechanism}
        for n, g in available().items()
    ]


def _attacks() -> list[dict[str, Any]]:
    from veilgraph import attack

    return [{"name": n, "what": str(getattr(attack, n).__doc__).splitlines()[0]} for n in attack.__all__]


def _sanitisers() -> list[dict[str, Any]]:
    from veilgraph.sanitise import available

    return [
        {"name": n, "what": str(s.__doc__).splitlines()[0], "promise": s.promise}
        for n, s in available().items()
    ]


def _losses() -> list[dict[str, Any]]:
    from veilgraph.train.losses import _FORMULAS

    return [{"name": name, "formula": str(f.__doc__)} for name, f in _FORMULAS.items()]


def _optimisers() -> list[dict[str, Any]]:
    from veilgraph.train.optim import OPTIMISERS

    return [{"name": name, "what": str(o.__doc__)} for name, o in OPTIMISERS.items()]


def _readers() -> list[dict[str, Any]]:
    from veilgraph.load import READERS

    return [{"name": r.name, "reads": str(type(r).__doc__), "example": r.example} for r in READERS]


def _mappings() -> list[dict[str, Any]]:
    from veilgraph.load.mapping import find_mapping, shipped

    lines = {name: find_mapping(name).read_text(encoding="utf-8").splitlines()[0] for name in shipped()}
    return [{"name": name, "what": line.lstrip("# ")} for name, line in lines.items()]


def _formats() -> list[dict[str, Any]]:
    from veilgraph.export import FORMATS

    return [{"name": name} for name in FORMATS]


def _datasets() -> list[dict[str, Any]]:
    from veilgraph.load.datasets import known

    return known()


def _experiments() -> list[dict[str, Any]]:
    from veilgraph.experiments import available

    return [{"name": name, "what": found.title} for name, found in available().items()]


def _settings() -> list[dict[str, Any]]:
    from veilgraph.config import TrainConfig

    return [
        {"name": key, "type": s.kind.__name__, "choices": " ".join(s.choices), "help": s.help}
        for key, s in TrainConfig.settings().items()
    ]
