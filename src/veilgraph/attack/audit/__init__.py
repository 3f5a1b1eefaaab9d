"""Audit: does a training keep the ε it claims? Canaries in one training, or its steps taken one by one; a lower bound on ε, a verdict."""

from __future__ import annotations

from veilgraph.attack.audit.verdict import audit

__all__ = ["audit"]
