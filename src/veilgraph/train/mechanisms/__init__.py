"""Mechanisms, one small file each; a new file is found by itself."""

from __future__ import annotations

from veilgraph.train.mechanisms.base import Mechanism, Step, mechanism_class

__all__ = ["Mechanism", "Step", "mechanism_class"]
