"""R2RML mappings: which columns of which tables become statements.

A mapping is fitted to the tables that are there: what names a missing table or column is left out and reported, so that
one mapping serves a whole database and its demo.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilgraph.errors import ReadError, UnknownNameError
from veilgraph.limits import beyond, limit
from veilgraph.load.queries import why_not

SHIPPED = Path(__file__).parent / "mappings"
R2RML = "http://www.w3.org/ns/r2rml#"
NAMING = ("column", "child", "parent", "tableName", "template")
PLAIN = re.compile(r""""?[^"'`;\\\x00-\x1f]+"?""")
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
COLUMN = re.compile(r"(?<!\\)\{([^{}]+)\}")


@dataclass(frozen=True)
class FittedMapping:
    """The part of a mapping that the tables can answer, as N-Triples, and what had to be left out."""

    text: str
    maps: int
    left_out: tuple[str, ...]


def shipped() -> list[str]:
    """Names of the mappings that come with veilgraph."""
    return sorted(path.stem for path in SHIPPED.glob("*.ttl"))


def find_mapping(name: str) -> Path:
    """The file of a mapping: a path, or the name of one that comes with veilgraph."""
    if Path(name).is_file():
        return Path(name)
    if name in shipped():
        return SHIPPED / f"{name}.ttl"
    hint = f"Give a file (R2RML, Turtle) or one of: {', '.join(shipped())}."
    raise UnknownNameError("mapping", name, shipped(), hint=hint)


def marks_beside(mapping: str) -> Path | None:
    """The rules that come with a shipped mapping, or lie beside a mapping's file: which predicates are confidential."""
    given = Path(mapping)
    path = given.with_suffix(".marks.yaml") if given.is_file() else SHIPPED / f"{mapping}.marks.yaml"
    return path if path.is_file() else None


def fit(path: Path, tables: Mapping[str, set[str]]) -> FittedMapping:
    """The mapping without what these tables (with their columns) do not have."""
    import pyoxigraph

    try:
        with path.open("rb") as file:
            triples: Any = list(pyoxigraph.parse(file, "text/turtle", base_iri="urn:mapping:"))
    except (SyntaxError, OSError, ValueError, RecursionError) as error:
        raise ReadError(path, f"is not a readable mapping (R2RML in Turtle): {error}") from None
    about: dict[str, list[Any]] = {}
    for triple in triples:
        about.setdefault(str(triple.subject), []).append(triple)

    looked_at = 0

    def count(found: list[Any]) -> list[Any]:
        """What maps share is looked at for each of them, but not without end."""
        nonlocal looked_at
        looked_at += len(found)
        if looked_at > limit("nodes"):
            problem = "has maps that share parts so often that they stand for too much"
            raise beyond(path, problem, "nodes", f"more than {limit('nodes'):,} triples")
        return found

    def values(node: str, name: str) -> list[Any]:
        count(about.get(node, []))
        return [t.object for t in about.get(node, ()) if t.predicate.value == R2RML + name]

    def reach(node: str) -> list[Any]:
        """Every triple below a node of the mapping; other maps it refers to are not entered."""
        found, waiting, entered = [], [node], {node}
        while waiting:
            for triple in count(about.get(waiting.pop(), [])):
                found.append(triple)
                below = str(triple.object)
                if isinstance(triple.object, pyoxigraph.BlankNode) and below not in entered:
                    entered.add(below)
                    waiting.append(below)
        return found

    def columns(node: str) -> set[str]:
        named: set[str] = set()
        for triple in reach(node):
            kind = triple.predicate.value.removeprefix(R2RML)
            if kind in ("column", "child"):
                named.add(triple.object.value.strip('"').lower())
            elif kind == "template":
                named |= {column.strip('"').lower() for column in COLUMN.findall(triple.object.value)}
        return named

    kept: list[Any] = []
    left_out: list[str] = []
    maps = [node for node in about if values(node, "logicalTable")]
    if not maps:
        raise ReadError(path, "holds no rr:logicalTable: it is not an R2RML mapping.")
    answered = 0
    for node in maps:
        _refuse(path, reach(node))
        logical = str(values(node, "logicalTable")[0])
        table = next((v.value.strip('"').lower() for v in values(logical, "tableName")), None)
        known = tables.get(table) if table is not None else None
        if table is not None and known is None:
            left_out.append(f"table {table}")
            continue
        drop: set[str] = set()
        if known is not None:
            subject = {c for v in values(node, "subjectMap") for c in columns(str(v))}
            if missing := sorted(subject - known):
                left_out.append(f"column {table}.{missing[0]}")
                continue
            for pair in map(str, values(node, "predicateObjectMap")):
                if missing := sorted(columns(pair) - known):
                    left_out.append(f"column {table}.{missing[0]}")
                    drop.add(pair)
        answered += 1
        for triple in about[node]:
            if str(triple.object) not in drop:
                kept.append(triple)
                if isinstance(triple.object, pyoxigraph.BlankNode):
                    kept += reach(str(triple.object))
    text = "".join(f"{t.subject} {t.predicate} {t.object} .\n" for t in dict.fromkeys(kept))
    return FittedMapping(text, answered, tuple(dict.fromkeys(left_out)))


def _refuse(path: Path, triples: list[Any]) -> None:
    """Raise for what R2RML does not know (sources of their own, functions), and for SQL that does more than read."""
    for triple in triples:
        kind = str(triple.predicate.value)
        if not kind.startswith((R2RML, RDF, RDFS)):
            raise ReadError(
                path,
                f"speaks of <{kind}>, which is not R2RML: tables and queries of the database are all that is read.",
            )
        value = str(getattr(triple.object, "value", ""))
        named = COLUMN.findall(value) if kind == R2RML + "template" else [value]
        if kind == R2RML + "template" and re.search(r"[{}\\]", re.sub(r"\{[^{}]+\}", "", value)):
            raise ReadError(
                path,
                f"has the template {value[:80]!r}, whose braces are no pairs: each column stands between two.",
            )
        if kind.removeprefix(R2RML) in NAMING and any(
            PLAIN.fullmatch(name.strip()) is None for name in named
        ):
            raise ReadError(
                path,
                f"names {value[:80]!r}, which is no table or column: quotation marks and semicolons end a name.",
            )
        if kind == R2RML + "sqlQuery" and (why := why_not(value)) is not None:
            raise ReadError(
                path,
                f"has a query that is not run: {why}. A mapping may hold one SELECT for each map: "
                f"{value.strip()[:120]!r}.",
            )
