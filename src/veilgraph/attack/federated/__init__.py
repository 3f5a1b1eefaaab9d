"""Attacks on federations: ``listen("clients/", out="f/", victim="client0", attacker="client1")``, then ``federated("f/", "passive")``."""

from __future__ import annotations

from veilgraph.attack.federated.judge import federated
from veilgraph.attack.federated.listen import listen

__all__ = ["federated", "listen"]
