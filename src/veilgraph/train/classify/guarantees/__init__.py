"""What can be promised about a graph whose labels are learnt, one small file each; a new file is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from veilgraph.train.classify.guarantees.base import Guarantee, Outcome, Task

__all__ = ["Guarantee", "Outcome", "Task", "available", "guarantee", "names"]


@cache
def available() -> dict[str, type[Guarantee]]:
    """Every guarantee by name."""
    found: dict[str, type[Guarantee]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for item in vars(module).values():
            own = isinstance(item, type) and item.__module__ == module.__name__
            if own and issubclass(item, Guarantee) and item is not Guarantee:
                found[item.name] = item
    return dict(sorted(found.items()))


def names() -> list[str]:
    """Their names."""
    return list(available())


def guarantee(name: str) -> Guarantee:
    """The one of that name."""
    return available()[name]()
