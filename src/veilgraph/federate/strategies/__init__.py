"""Strategies, one small file each: which rows are shared. A new file is found by itself."""

from __future__ import annotations

from veilgraph.federate.strategies.base import Strategy, strategy

__all__ = ["Strategy", "strategy"]
