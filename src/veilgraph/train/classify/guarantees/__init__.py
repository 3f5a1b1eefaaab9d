"""What can be promised about a graph whose labels are learnt, one small file each; a new file is found by itself."""

from __future__ import annotations

from functools import cache

from veilgraph.discover import discover
from veilgraph.train.classify.guarantees.base import Guarantee, Outcome, Task

__all__ = ["Guarantee", "Outcome", "Task", "available", "guarantee", "names"]


@cache
def available() -> dict[str, type[Guarantee]]:
    """Every guarantee by name."""
    return discover(__name__, __path__, Guarantee)


def names() -> list[str]:
    """Their names."""
    return list(available())


def guarantee(name: str) -> Guarantee:
    """The one of that name."""
    return available()[name]()
