"""What a run may say in public about the graph it was trained on."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from veilgraph.mark.rules import may_be_confidential

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph


def commitment(graph: Graph, salt: str) -> str:
    """A keyed hash of names, statements and marks: binding for the curator, silent to everybody else."""
    marks = graph.marks.fingerprint if graph.marks is not None else "unmarked"
    return hmac.new(bytes.fromhex(salt), f"{graph.fingerprint} {marks}".encode(), hashlib.sha256).hexdigest()


def confidential_relations(graph: Graph) -> list[str] | str:
    """The relations whose statements may be confidential by public rules; «any» where rules are of another kind."""
    found = may_be_confidential(graph)
    return "any" if found.all() else [graph.relations[i] for i in found.nonzero()[0]]
