"""Entities that can be read: vectors of descriptions, made once by a public, frozen encoder, and what is learnt on top of them.

vectors    where token and sentence vectors come from: a wheel or a local folder, never the network · cache: made once, kept by content
encoders   one file each: how a text becomes numbers · rows: from those numbers, and a structure row, to an entity's row
"""

from __future__ import annotations

import functools

from veilgraph.discover import discover
from veilgraph.errors import UnknownNameError
from veilgraph.models.text import encoders
from veilgraph.models.text.encoders.base import TextEncoder

__all__ = ["TextEncoder", "available", "encoder"]


@functools.cache
def available() -> dict[str, type[TextEncoder]]:
    """Every encoder of texts by name."""
    return discover(encoders.__name__, encoders.__path__, TextEncoder)


def encoder(name: str, vectors: str | None = None) -> TextEncoder:
    """The encoder of that name, on vectors from that source (its own usual one, if none is named)."""
    if name not in available():
        raise UnknownNameError(
            "text encoder", name, available(), hint=f"There are: {', '.join(available())}."
        )
    return available()[name](vectors)
