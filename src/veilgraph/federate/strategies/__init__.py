"""Strategies, one small file each: which rows are shared. A new file is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from veilgraph.errors import UnknownNameError
from veilgraph.federate.strategies.base import Strategy

__all__ = ["Strategy", "available", "strategy"]


@cache
def available() -> dict[str, type[Strategy]]:
    """Every strategy by name."""
    found: dict[str, type[Strategy]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for item in vars(module).values():
            own = isinstance(item, type) and item.__module__ == module.__name__
            if own and issubclass(item, Strategy) and item is not Strategy:
                found[item.name] = item
    return dict(sorted(found.items()))


def strategy(name: str) -> Strategy:
    """The strategy of that name."""
    if name not in available():
        raise UnknownNameError("strategy", name, list(available()), hint="See: veil list strategies.")
    return available()[name]()
