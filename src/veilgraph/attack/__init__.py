"""Attacks: what somebody learns who has only what he may see. For researchers, and for curators before they publish."""

from __future__ import annotations

from veilgraph.attack.attribute import attribute
from veilgraph.attack.audit import audit
from veilgraph.attack.federated import federated
from veilgraph.attack.membership import membership

__all__ = ["attribute", "audit", "federated", "membership"]
