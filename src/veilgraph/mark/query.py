"""Confidential statements by a SPARQL query over the graph itself, in an embedded store."""

from __future__ import annotations

import json
import re
import string
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from veilgraph.errors import InputError
from veilgraph.limits import beyond, limit
from veilgraph.load import Graph

BASE = "veil://graph/"  # names that are no IRI are asked for relative to this: <patient/17>, <hasDiagnosis>
MEMORY = 2 << 30  # bytes a query may take, beside those of the graph
WORD = re.compile("service", re.IGNORECASE)
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
LETTERS = string.ascii_letters + string.digits + "_"
SIGNS = tuple("?$:/#@-")  # that begin or continue a name
NUMBER = re.compile(r"\d+(e\d+)?|true|false", re.IGNORECASE)


def statements_of(graph: Graph, query: str) -> np.ndarray:
    """The keys of the statements a CONSTRUCT, or a SELECT of three columns (head, relation, tail), returns."""
    refuse_service(query)
    rows = _answers(_triples(graph), query)
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


def refuse_service(query: str) -> None:
    """Raise for a query that may ask another server, which would hear statements that are confidential.

    The word is refused wherever it could be the keyword, in text and comments too: what is text depends on what stands before it (a «<»
    may begin an address or compare), and a reader that is mistaken there would let it through. It may be a part of a longer name.
    """
    text = query
    for _ in range(4):
        if any(_stands_alone(text, one.start()) for one in WORD.finditer(text)):
            raise InputError(
                "the SPARQL query holds the word SERVICE, which asks another server and tells it what is confidential: it is not run. Ask "
                "this graph alone (in text, write CONCAT('SERV', 'ICE'); a longer name with the word in it is read as it is)."
            )
        decoded = ESCAPE.sub(lambda one: chr(min(int(one[1] or one[2], 16), 0x10FFFF)), text)
        if decoded == text:
            return
        text = decoded
    raise InputError("the SPARQL query holds escapes of escapes (\\u): write its characters as they are.")


def _stands_alone(text: str, place: int) -> bool:
    """Whether a word is not the end of a name: of a variable, an address, or a longer word. (A number or a truth value ends by itself.)"""
    head = text[max(0, place - 200) : place]
    letters = head[len(head.rstrip(LETTERS)) :]
    ends_a_name = head[: len(head) - len(letters)][-1:] in SIGNS if len(letters) < len(head) else False
    return not ends_a_name and (not letters or NUMBER.fullmatch(letters) is not None)


def _answers(triples: bytes, query: str) -> list[list[str]]:
    """Each row once, found by a process that can open nothing, within its time and memory."""
    memory = MEMORY + 8 * len(triples)
    asked = json.dumps({"query": query, "base": BASE, "memory": memory}).encode() + b"\n"
    words = [sys.executable, "-P", str(Path(__file__).with_name("ask.py"))]
    try:
        done = subprocess.run(
            words, input=asked + triples, capture_output=True, timeout=limit("query"), check=False
        )
    except subprocess.TimeoutExpired:
        raise beyond(
            "the SPARQL query", "takes too long", "query", f"more than {limit('query'):,} seconds"
        ) from None
    found = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    if done.returncode:
        raise InputError(
            "the SPARQL query cannot be run: it takes more memory than its answer may. Ask for less at a time."
        )
    if found and isinstance(found[-1], dict):
        why = found[-1]["error"]
        if why == "shape":
            raise InputError(
                "the SPARQL query must return statements: CONSTRUCT, or SELECT ?head ?relation ?tail."
            )
        raise InputError(f"the SPARQL query cannot be run: {why}")
    return found


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


def _name(value: str) -> str:
    return unquote(value.removeprefix(BASE)) if value.startswith(BASE) else value
