"""The facts a run states about the graph it is of, and how they are bound to its ledger.

What is promised follows from settings *and* facts: a certificate that speaks of patients where statements were counted would be a lie
with a valid seal. So one line of the ledger holds a digest of both, from before the first step, and whoever continues, certifies or
verifies a run compares them, and, where the graph is at hand, its marks too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from veilgraph.account.events import nothing
from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.disk import digest
from veilgraph.errors import RunError
from veilgraph.layout import CONFIG
from veilgraph.load.source import seen_from
from veilgraph.run.commitment import commitment, confidential_relations

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph

OF_MARKS = ("unit", "per_unit", "may_be_confidential")


def facts_of(graph: Graph, folder: Path, salt: str | None) -> dict[str, Any]:
    """What config.yaml says of a graph; without a salt nothing is promised about it, and its plain fingerprint is stored."""
    return {
        "graph": seen_from(graph.source, folder),
        "commitment": graph.fingerprint if salt is None else commitment(graph, salt),
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        **marks_of(graph),
        "decided_from": decided_from(graph),
    }


def sizes_of(graph: Graph) -> dict[str, int]:
    """What prices follow from, beside the noisy number of units."""
    return {
        "per_unit": graph.marks.per_unit if graph.marks is not None else 1,
        "entities": len(graph.entities),
        "relations": len(graph.relations),
    }


def marks_of(graph: Graph) -> dict[str, Any]:
    """Unit, cap, and the relations that may be confidential."""
    return {
        "unit": graph.marks.unit if graph.marks is not None else "statement",
        "per_unit": graph.marks.per_unit if graph.marks is not None else 1,
        "may_be_confidential": confidential_relations(graph),
    }


def decided_from(graph: Graph) -> list[str]:
    """What was decided by looking at confidential statements before any noise, and is therefore taken to be public."""
    marks = graph.marks.decided_from if graph.marks is not None else ()
    return list(dict.fromkeys([*graph.decided_from, *marks]))


def bind(ledger: Ledger, config: TrainConfig, facts: Mapping[str, Any], **more: Any) -> str:
    """Write settings and facts down on the ledger, at no cost: from here on they hold. Returns the text of config.yaml."""
    text = yaml.safe_dump({**facts, "settings": config.as_dict()}, sort_keys=False, allow_unicode=True)
    whole = hashlib.sha256(text.encode()).hexdigest()
    ledger.charge(nothing(), "settings", digest=config.digest, facts=digest_of(facts), file=whole, **more)
    return text


def require_names(ledger: Ledger, vocabulary: Path) -> None:
    """Raise if the names of an unfinished run are not those it began with."""
    bound = [line["names"] for line in ledger.lines if "names" in line]
    if bound and digest(vocabulary) != bound[-1]:
        raise RunError(
            f"{vocabulary} is damaged: its names are not those the training began with. Put the file back, or train anew."
        )


def digest_of(facts: Mapping[str, Any]) -> str:
    """A SHA-256 of every fact."""
    return hashlib.sha256(json.dumps(dict(facts), sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def unbound(
    ledger: Ledger,
    config: TrainConfig,
    facts: Mapping[str, Any],
    *,
    file: Path | None = None,
    facts_needed: bool = True,
) -> list[str]:
    """Why settings and facts are not those of the ledger; nothing if they are. (Ledgers of earlier versions bind settings alone.)

    ``file`` is config.yaml, to be compared byte by byte.
    """
    bound = [line for line in ledger.lines if "digest" in line]
    if not bound or any(line["digest"] != config.digest for line in bound):
        return [f"{CONFIG} was changed: its settings are not those the training began with"]
    if any(
        line.get("facts", None if facts_needed else digest_of(facts)) != digest_of(facts) for line in bound
    ):
        return [
            f"{CONFIG} was changed: what it says of the graph (unit, cap, …) is not what the training began with"
        ]
    if file is not None and bound[-1].get("file", digest(file)) != digest(file):
        return [f"{CONFIG} is damaged: it says the same in other characters than were written"]
    return []


def differing(facts: Mapping[str, Any], graph: Graph) -> list[str]:
    """Where facts say something else than the marks of the graph they are about."""
    marks = marks_of(graph)
    return [
        f"{key} is {facts.get(key)!r} in {CONFIG}, {marks[key]!r} by the marks of the graph"[:300]
        for key in OF_MARKS
        if facts.get(key) != marks[key]
    ]
