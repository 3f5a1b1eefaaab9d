"""Mechanisms, one small file each; a new file is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from veilgraph.errors import UnknownNameError
from veilgraph.train.private.mechanisms.base import Mechanism, Step, Terms

__all__ = ["Mechanism", "Step", "Terms", "available", "mechanism_class", "names"]


@cache
def available() -> dict[str, type[Mechanism]]:
    """Every mechanism by name."""
    found: dict[str, type[Mechanism]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for item in vars(module).values():
            own = isinstance(item, type) and item.__module__ == module.__name__
            if own and issubclass(item, Mechanism) and item is not Mechanism:
                found[item.name] = item
    return dict(sorted(found.items()))


def names() -> list[str]:
    """The names of the mechanisms."""
    return list(available())


def mechanism_class(name: str) -> type[Mechanism]:
    """The mechanism of that name."""
    if name not in available():
        raise UnknownNameError("mechanism", name, names(), hint="See: veil list mechanisms.")
    return available()[name]
