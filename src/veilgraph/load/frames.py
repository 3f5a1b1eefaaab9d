"""Polars, read when it is first used: a saved graph is opened without it, and a service should start quickly."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from veilgraph.machine import import_later

if TYPE_CHECKING:
    import polars as pl
else:
    pl = import_later("polars")

__all__ = ["broken", "first_line", "pl"]


def broken(*more: type[BaseException]) -> tuple[type[BaseException], ...]:
    """What reading a damaged file may raise; a panic of the library is no exception of Python's."""
    return (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, EOFError, zlib.error, *more)


def first_line(error: BaseException) -> str:
    """What went wrong, in a line."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
