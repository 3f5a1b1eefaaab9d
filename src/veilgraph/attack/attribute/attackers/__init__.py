"""Attackers: one small file each. Each learns from people whose attribute it knows, and gives every value a chance for others."""

from __future__ import annotations

import importlib
import pkgutil

from veilgraph.attack.attribute.attackers.base import Attacker, Classifier
from veilgraph.errors import MissingExtraError, UnknownNameError

__all__ = ["Attacker", "Classifier", "attackers", "chosen"]


def attackers() -> dict[str, Attacker]:
    """Every attacker by its name."""
    try:
        for module in pkgutil.iter_modules(__path__):
            importlib.import_module(f"{__name__}.{module.name}")
    except ImportError:
        raise MissingExtraError("veil attack attribute", "attack") from None
    kinds = [
        one for one in (*Attacker.__subclasses__(), *Classifier.__subclasses__()) if one is not Classifier
    ]
    return {one.name: one() for one in sorted(kinds, key=lambda one: one.name)}


def chosen(name: str) -> dict[str, Attacker]:
    """One by its name; «best»: all that are quick; «all»: the slow ones too."""
    known = attackers()
    if name in ("best", "all"):
        return {key: one for key, one in known.items() if name == "all" or not one.slow}
    if name not in known:
        raise UnknownNameError("attacker", name, known, hint=f"There are: best, all, {', '.join(known)}.")
    return {name: known[name]}
