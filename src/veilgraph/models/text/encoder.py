"""An encoder of texts by name."""

from __future__ import annotations

from veilgraph import registry
from veilgraph.models.text.encoders.base import TextEncoder


def encoder(name: str, vectors: str | None = None) -> TextEncoder:
    """The encoder of that name, on vectors from that source (its own usual one, if none is named)."""
    found: TextEncoder = registry.find("encoders", name)(vectors)
    return found
