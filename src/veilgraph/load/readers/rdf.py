"""RDF files: N-Triples, Turtle, N-Quads, TriG and RDF/XML, plain or gzipped, through pyoxigraph."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from veilgraph.errors import ReadError
from veilgraph.limits import beyond, limit, opened
from veilgraph.load.frames import pl
from veilgraph.load.readers.base import Names, Parts, Reader, ReadOptions, regular_file
from veilgraph.load.readers.blank_nodes import NUMBERED, OF_LABELS, Labelled, Naming, mentioned

MEDIA_TYPES = {
    ".nt": "application/n-triples",
    ".ttl": "text/turtle",
    ".nq": "application/n-quads",
    ".trig": "application/trig",
    ".rdf": "application/rdf+xml",
    ".owl": "application/rdf+xml",
    ".xml": "application/rdf+xml",
}
XML = "application/rdf+xml"
ENTITY = re.compile(
    rb"""<!ENTITY[ \t\r\n]+[A-Za-z_][\w.-]*[ \t\r\n]+(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')[ \t\r\n]*>"""
)
HEAD = 1 << 20  # bytes in which a file may declare entities
DESCRIBING = (
    "http://www.w3.org/2000/01/rdf-schema#comment",
    "http://schema.org/description",
    "https://schema.org/description",
    "http://purl.org/dc/terms/description",
)
BLOCK = 200_000
BUFFER = 1 << 16


class RdfReader(Reader):
    """Statements between IRIs and blank nodes; literals are dropped or become entities (``--literals entity``)."""

    name = "rdf"
    turn = 2
    endings = tuple(MEDIA_TYPES)
    example = "graph.ttl"

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        return read_file(source, options, names)


def read_file(source: str, options: ReadOptions, names: Names, scope: str = "") -> Parts:
    """One file, plain or gzipped."""
    path = regular_file(source)
    ending = Path(source.removesuffix(".gz")).suffix.lower()
    if MEDIA_TYPES[ending] == XML:
        with opened(path) as file:
            refuse_entities(file, source)
    labels = False
    if MEDIA_TYPES[ending] in OF_LABELS:
        labels = _mentioned(path, source)
    with opened(path) as file:
        return parse(file, MEDIA_TYPES[ending], source, options, names, scope, labels=labels)


def _mentioned(path: Path, source: str) -> bool:
    try:
        with opened(path) as file:
            return mentioned(file)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ReadError(source, f"cannot be read: {error}") from None


def parse(
    file: BinaryIO,
    media_type: str,
    source: str,
    options: ReadOptions,
    names: Names,
    scope: str = "",
    *,
    labels: bool = False,
) -> Parts:
    """Statements and descriptions of one RDF stream.

    With ``labels`` blank nodes are called what the source calls them (``scope`` keeps those of several files apart). Those without
    a label are numbered in order of appearance, because the parser gives them a random name at every reading: ``decided`` says so.
    """
    import pyoxigraph

    frames: list[pl.DataFrame] = []
    descriptions: dict[str, tuple[int, str]] = {}
    block: list[tuple[str, str, str]] = []
    own = Labelled(file, media_type) if labels else None
    naming = Naming(file if own is None else own, scope)
    stream = file if own is None else io.BufferedReader(own, BUFFER)
    name = naming.name

    try:
        statement: Any
        for statement in pyoxigraph.parse(stream, media_type, base_iri="urn:veilgraph:"):
            relation = name(statement.predicate)
            if relation.startswith("_:"):
                raise ReadError(
                    source, f"has the blank node {relation} for a relation; relations have addresses."
                )
            literal = isinstance(statement.object, pyoxigraph.Literal)
            if literal and statement.predicate.value in DESCRIBING:
                rank, subject = _foreign(statement.object.language, options.language), name(statement.subject)
                if subject not in descriptions or rank < descriptions[subject][0]:
                    descriptions[subject] = (rank, statement.object.value)
                continue
            if literal and options.literals == "drop":
                continue
            block.append((name(statement.subject), relation, name(statement.object)))
            if len(block) == BLOCK:
                frames.append(_frame(block, names))
                block.clear()
    except SyntaxError as error:
        line, reason = _where(error)
        raise ReadError(source, f"is not valid {media_type.split('/')[1]}: {reason}", line=line) from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ReadError(source, f"cannot be read: {error}") from None
    frames.append(_frame(block, names))
    frame = pl.concat(frames)
    if not len(frame):
        raise ReadError(
            source,
            "holds no statement between two resources. If its facts are literals, use --literals entity.",
        )
    texts = {subject: text for subject, (_, text) in descriptions.items()}
    decided = (NUMBERED,) if naming.numbered else ()
    return Parts({"train": frame}, texts or None, naming.said, decided=decided)


def refuse_entities(file: BinaryIO, source: str) -> None:
    """Raise for an XML file whose entities could become more than they are: only short ones that name no other, as ontologies have.

    (Those stand for namespaces in files that ontology editors write. A thousand bytes that name each other took twelve gigabytes.)
    """
    head = file.read(HEAD)
    found = list(ENTITY.finditer(head))
    if len(found) != head.count(b"<!ENTITY"):
        raise ReadError(
            source,
            "declares an entity that is elsewhere, for its own declarations, or oddly written: that is not read.",
        )
    for value in (one["double"] if one["double"] is not None else one["single"] for one in found):
        if b"&" in value or b"%" in value or len(value) > limit("entity"):
            raise beyond(
                source,
                "declares an entity that names another or is long",
                "entity",
                f"{len(value):,} bytes",
            )
    before = head[-8:]
    while block := file.read(HEAD):
        if b"<!ENTITY" in before + block:
            raise ReadError(source, "declares an entity far behind its beginning: that is not read.")
        before = block[-8:]


def _foreign(found: str | None, wanted: str | None) -> int:
    """0 for the language asked for (en is also en-GB), 1 for a text without one, 2 for others; all alike if nobody asked."""
    if wanted is None or (found or "").lower().split("-")[0] == wanted.lower().split("-")[0]:
        return 0
    return 1 if found is None else 2


def _frame(block: Iterable[tuple[str, str, str]], names: Names) -> pl.DataFrame:
    text = dict.fromkeys(names.schema, pl.String)
    found = pl.DataFrame(list(block), schema=text, orient="row")
    longest = max((int(column.str.len_bytes().max() or 0) for column in found), default=0)  # type: ignore[arg-type]
    if longest > limit("text"):
        raise beyond("a name in this source", "is no name", "text", f"{longest:,} bytes")
    return found.cast(names.schema)  # type: ignore[arg-type]


def _where(error: SyntaxError) -> tuple[int | None, str]:
    """Line number and reason of a parser error."""
    message = str(error)
    line = error.lineno
    if line is None and (found := re.search(r"line (\d+)", message)):
        line = int(found.group(1))
    return line, re.sub(r"^(Parser error|error while parsing.*?):? ?", "", message).strip()
