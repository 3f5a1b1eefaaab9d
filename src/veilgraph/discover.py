"""One small file each, found by itself: the classes of one kind that the files of a package define."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any


def discover(package: str, path: Iterable[str], base: type[Any]) -> dict[str, Any]:
    """Subclasses of ``base`` by their ``name``, sorted; ``package`` and ``path`` are its ``__name__`` and ``__path__``."""
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(path):
        module = importlib.import_module(f"{package}.{info.name}")
        for item in vars(module).values():
            own = isinstance(item, type) and item.__module__ == module.__name__
            if own and issubclass(item, base) and item is not base:
                found[item.name] = item
    return dict(sorted(found.items()))
