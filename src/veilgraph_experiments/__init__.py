"""Published tables and figures as runnable files: ``veil experiment dpkge-table7 --quick``.

One file per table or figure: which trainings it takes, how their results become rows, and the paper's numbers beside.
"""

from __future__ import annotations

import importlib
import pkgutil

from veilgraph.errors import UnknownNameError
from veilgraph_experiments.experiment import Experiment, conduct

__all__ = ["Experiment", "available", "conduct", "find"]


def available() -> dict[str, Experiment]:
    """Every experiment by its name."""
    found: dict[str, Experiment] = {}
    for module in pkgutil.iter_modules(__path__):
        for item in getattr(importlib.import_module(f"{__name__}.{module.name}"), "EXPERIMENTS", ()):
            found[item.name] = item
    return dict(sorted(found.items()))


def find(name: str) -> Experiment:
    """One experiment."""
    known = available()
    if name not in known:
        raise UnknownNameError("experiment", name, known, hint=f"There are: {', '.join(known)}.")
    return known[name]
