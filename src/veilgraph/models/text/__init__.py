"""Entities that can be read: vectors of descriptions, made once by a public, frozen encoder, and what is learnt on top of them.

vectors    where token and sentence vectors come from: a wheel or a local folder, never the network · cache: made once, kept by content
encoders   one file each: how a text becomes numbers · rows: from those numbers, and a structure row, to an entity's row
"""

from __future__ import annotations

from veilgraph.models.text.encoder import encoder
from veilgraph.models.text.encoders.base import TextEncoder

__all__ = ["TextEncoder", "encoder"]
