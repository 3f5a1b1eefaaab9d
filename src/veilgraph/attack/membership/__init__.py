"""Membership: was this statement in the graph? Members against non-members that differ in nothing else, beside a control."""

from __future__ import annotations

from veilgraph.attack.membership.decide import membership

__all__ = ["membership"]
