"""Mechanisms, one small file each; a new file is found by itself."""

from __future__ import annotations

from functools import cache

from veilgraph.discover import discover
from veilgraph.errors import UnknownNameError
from veilgraph.train.private.mechanisms.base import Mechanism, Step, Terms

__all__ = ["Mechanism", "Step", "Terms", "available", "mechanism_class", "names"]


@cache
def available() -> dict[str, type[Mechanism]]:
    """Every mechanism by name."""
    return discover(__name__, __path__, Mechanism)


def names() -> list[str]:
    """The names of the mechanisms."""
    return list(available())


def mechanism_class(name: str) -> type[Mechanism]:
    """The mechanism of that name."""
    if name not in available():
        raise UnknownNameError("mechanism", name, names(), hint="See: veil list mechanisms.")
    return available()[name]
