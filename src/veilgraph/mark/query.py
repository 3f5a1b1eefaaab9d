"""Confidential statements by a SPARQL query over the graph itself, in an embedded store."""

from __future__ import annotations

import io
from urllib.parse import quote, unquote

import numpy as np

from veilgraph.errors import InputError
from veilgraph.load import Graph

BASE = "veil://graph/"  # names that are no IRI are asked for relative to this: <patient/17>, <hasDiagnosis>


def statements_of(graph: Graph, query: str) -> np.ndarray:
    """The keys of the statements a CONSTRUCT, or a SELECT of three columns (head, relation, tail), returns."""
    import pyoxigraph

    store = pyoxigraph.Store()
    store.bulk_load(io.BytesIO(_triples(graph)), "application/n-triples")
    try:
        answers = store.query(query, base_iri=BASE)
        rows = [tuple(row)[:3] for row in answers] if not isinstance(answers, bool) else []
    except (SyntaxError, ValueError, OSError) as error:
        raise InputError(f"the SPARQL query cannot be run: {error}") from None
    if isinstance(answers, bool) or any(len(row) != 3 for row in rows[:1]):
        raise InputError(
            "the SPARQL query must return statements: CONSTRUCT, or SELECT ?head ?relation ?tail."
        )
    if not rows:
        raise InputError("the SPARQL query returned nothing: nothing would be confidential.")
    heads, relations, tails = ([_name(term) for term in column] for column in zip(*rows))
    found = np.column_stack(
        [graph.entities.places(heads), graph.relations.places(relations), graph.entities.places(tails)]
    )
    if found.min() < 0:
        unknown = " ".join(str(term) for term in rows[int(found.min(1).argmin())])
        raise InputError(
            f"the SPARQL query returned {unknown}, which names something that is not in the graph."
        )
    return graph.keys(found)


def _triples(graph: Graph) -> bytes:
    entities = [_term(name) for name in graph.entities]
    relations = [_term(name) for name in graph.relations]
    lines = (f"{entities[h]} {relations[r]} {entities[t]} .\n" for h, r, t in graph.triples.tolist())
    return "".join(lines).encode()


def _term(name: str) -> str:
    if name.startswith("_:"):
        return name
    address = (
        name if "://" in name or name.startswith("urn:") else BASE + quote(name, safe="/:@!$&'()*+,;=-._~#")
    )
    return "<" + quote(address, safe="/:@!$&'()*+,;=-._~#%?[]") + ">"


def _name(term: object) -> str:
    value = str(getattr(term, "value", term))
    return unquote(value.removeprefix(BASE)) if value.startswith(BASE) else value
