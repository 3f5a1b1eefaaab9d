"""Strategies, one small file each: which rows are shared. A new file is found by itself."""

from __future__ import annotations

from functools import cache

from veilgraph.discover import discover
from veilgraph.errors import UnknownNameError
from veilgraph.federate.strategies.base import Strategy

__all__ = ["Strategy", "available", "strategy"]


@cache
def available() -> dict[str, type[Strategy]]:
    """Every strategy by name."""
    return discover(__name__, __path__, Strategy)


def strategy(name: str) -> Strategy:
    """The strategy of that name."""
    if name not in available():
        raise UnknownNameError("strategy", name, list(available()), hint="See: veil list strategies.")
    return available()[name]()
