"""Which statements are confidential and whose they are: ``mark(graph, relations=["hasDiagnosis"], unit="head")``."""

from __future__ import annotations

from veilgraph.mark.rules import (
    absent_relations,
    mark,
    mark_by_rules,
    may_be_confidential,
    unknown_relations,
    unrestricted,
)
from veilgraph.mark.suggest import proposal, suggest
from veilgraph.mark.summary import beside, summarise
from veilgraph.mark.units import units

__all__ = [
    "absent_relations",
    "beside",
    "mark",
    "mark_by_rules",
    "may_be_confidential",
    "proposal",
    "suggest",
    "summarise",
    "units",
    "unknown_relations",
    "unrestricted",
]
