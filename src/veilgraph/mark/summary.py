"""What was marked, and what an outsider still sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from veilgraph.load import Graph
from veilgraph.mark.units import unit_of, units


def summarise(graph: Graph) -> dict[str, Any]:
    """Counts for the curator: they depend on confidential statements and are not for publication."""
    marks = graph.marks
    mask = np.concatenate([graph.secret(split) for split in graph.splits])
    statements = graph.triples
    secret, open_ = statements[mask], statements[~mask]
    hidden = np.bincount(secret[:, 1], minlength=len(graph.relations))
    visible = np.bincount(open_[:, 1], minlength=len(graph.relations))
    of_units = np.unique(units(graph), return_counts=True)[1]
    named = np.unique(secret[:, [0, 2]])
    seen = np.zeros(len(graph.entities), bool)
    seen[open_[:, [0, 2]]] = True
    cap = marks.per_unit if marks is not None else 1
    return {
        "confidential": len(secret),
        "unrestricted": len(open_),
        "splits": {
            s: {"confidential": int(graph.secret(s).sum()), "statements": len(a)}
            for s, a in graph.splits.items()
        },
        "unit": marks.unit if marks is not None else None,
        "per_unit": cap,
        "units": len(of_units),
        "largest_unit": int(of_units.max()) if len(of_units) else 0,
        "cut_by_cap": int(np.maximum(of_units - cap, 0).sum())
        if marks is not None and marks.unit != "statement"
        else 0,
        "about_others": about_others(graph),
        "relations": {
            graph.relations[i]: {"confidential": int(hidden[i]), "unrestricted": int(visible[i])}
            for i in np.flatnonzero(hidden)
        },
        "outsider_sees": {
            "entity_names": len(graph.entities),
            "relation_names": len(graph.relations),
            "statements": len(open_),
            "entities_with_secrets": len(named),
            "of_them_in_unrestricted_statements": int(seen[named].sum()),
            "of_them_known_by_name_only": int((~seen[named]).sum()),
        },
    }


def about_others(graph: Graph) -> int:
    """How many confidential statements have the head of another unit as their tail: they are about it, and no part of its unit.

    Reads confidential data: all of it. Releases: a count, for the curator.
    """
    unit = unit_of(graph.marks.unit if graph.marks is not None else "statement")
    if not unit.of_heads:
        return 0
    secret = np.concatenate([graph.split(name)[graph.secret(name)] for name in graph.splits])
    own, of_tail = unit.of(graph, secret), unit.of(graph, secret[:, ::-1])
    return int((np.isin(of_tail, own) & (of_tail != own)).sum())


def beside(graph: Graph) -> dict[str, int]:
    """Relations without a confidential statement that are about the same entities as confidential ones, and how often.

    «About» is by head: whoever is the head of a confidential statement, and whoever leads there by an unrestricted one (a patient, where
    what is confidential is said of admissions). Counts depend on confidential statements: for the curator.
    """
    mask = np.concatenate([graph.secret(split) for split in graph.splits])
    secret, open_ = graph.triples[mask], graph.triples[~mask]
    marked = np.bincount(secret[:, 1], minlength=len(graph.relations)) > 0
    whose = np.zeros(len(graph.entities), bool)
    whose[secret[:, 0]] = True
    while True:
        leads = np.unique(open_[whose[open_[:, 2]], 0])
        if whose[leads].all():
            break
        whose[leads] = True
    about = open_[whose[open_[:, 0]] & ~marked[open_[:, 1]]]
    counts = np.bincount(about[:, 1], minlength=len(graph.relations))
    return {graph.relations[int(i)]: int(counts[i]) for i in np.argsort(-counts, kind="stable") if counts[i]}
