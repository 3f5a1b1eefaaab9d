"""A federation that attackers listen to: ``listen("clients/", out="f/", victim="client0", attacker="client1")``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from veilgraph.attack.federated.targets import TARGETS, Targets, plant
from veilgraph.errors import MissingExtraError
from veilgraph.federate.federation import federate
from veilgraph.federate.places import graphs_of
from veilgraph.load.source import load
from veilgraph.load.store import save


def listen(
    source: str | Path,
    *,
    out: str | Path,
    victim: str,
    attacker: str,
    active: bool = False,
    every: int = 5,
    count: int = 1000,
    seed: int = 0,
    own: dict[str, Any] | None = None,
    listener: Callable[[Any], None] | None = None,
    tell: Callable[[str], None] | None = None,
    **terms: Any,
) -> dict[str, Any]:
    """A federation in one process that attackers listen to: as ``federate``, with targets planted in the victim's graph.

    Any strategy, aggregate and server step. (A trimmed mean is read as a mean: where three clients or more hold a row the attacker then
    takes out a little too much, as it would have to.)

    Reads confidential data: every client's. Releases: nothing; a transcript is for the researcher.
    """
    try:
        from veilgraph.attack.federated.transcript import Listener
    except ImportError:
        raise MissingExtraError("attacks on federations", "federate") from None
    folder, paths = Path(out), graphs_of(source)
    planted = folder / "planted" / victim
    if not (folder / TARGETS).exists():
        graphs = {name: load(path) for name, path in paths.items()}
        graph, targets = plant(graphs, victim, attacker, count=count, seed=seed)
        folder.mkdir(parents=True, exist_ok=True)
        save(graph, planted)
        targets.save(folder)
    targets = Targets.read(folder)
    app = Listener(folder, targets, every=every, active=active)
    return federate(
        {**paths, victim: planted},
        out=folder,
        own=own,
        listener=listener,
        tell=tell,
        app=app,
        seed=seed,
        **terms,
    )
