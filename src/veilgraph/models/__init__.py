"""Scorers, one small file each; a new file is found by itself.

``create(name, dimension)`` makes one, ``names()`` lists them; ``pykeen:TransD`` wraps any PyKEEN interaction.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from veilgraph.errors import UnknownNameError
from veilgraph.models.base import GenericModel, Model

__all__ = ["GenericModel", "Model", "available", "create", "names"]

_NOT_MODELS = ("base", "kernels", "similarity", "parameters", "pykeen_interaction", "prior", "gcn", "text")


@cache
def available() -> dict[str, type[Model]]:
    """Every built-in scorer by name."""
    found: dict[str, type[Model]] = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name in _NOT_MODELS or info.ispkg:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, Model) and item.__module__ == module.__name__:
                found[item.name] = item
    return dict(sorted(found.items()))


def names() -> list[str]:
    """The names of the built-in scorers."""
    return list(available())


def model_class(name: str) -> type[Model]:
    """The scorer of that name."""
    if name.startswith("pykeen:"):
        from veilgraph.models.pykeen_interaction import interaction_model

        return interaction_model(name.removeprefix("pykeen:"))
    if name not in available():
        raise UnknownNameError("model", name, names(), hint="See: veil list models.")
    return available()[name]


def create(name: str, dimension: int, *, norm: int = 1) -> Model:
    """A scorer by name, e.g. ``create("rotate", 128)``."""
    return model_class(name)(dimension, norm=norm)
