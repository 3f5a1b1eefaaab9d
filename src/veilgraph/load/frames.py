"""Polars, read when it is first used: a saved graph is opened without it, and a service should start quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilgraph.machine import import_later

if TYPE_CHECKING:
    import polars as pl
else:
    pl = import_later("polars")

__all__ = ["pl"]
