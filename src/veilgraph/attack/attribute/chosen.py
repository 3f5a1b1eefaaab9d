"""Which attackers are tried."""

from __future__ import annotations

from veilgraph import registry
from veilgraph.attack.attribute.attackers.base import Attacker
from veilgraph.errors import UnknownNameError


def chosen(name: str) -> dict[str, Attacker]:
    """One by its name; «best»: all that are quick; «all»: the slow ones too."""
    known: dict[str, Attacker] = {key: one() for key, one in registry.available("attackers").items()}
    if name in ("best", "all"):
        return {key: one for key, one in known.items() if name == "all" or not one.slow}
    if name not in known:
        raise UnknownNameError("attacker", name, known, hint=f"There are: best, all, {', '.join(known)}.")
    return {name: known[name]}
