"""A SPARQL endpoint over HTTP: what a CONSTRUCT query returns."""

from __future__ import annotations

import http.client
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import IO

from veilgraph.errors import ReadError
from veilgraph.load.readers.base import Names, Parts, Reader, ReadOptions
from veilgraph.load.readers.rdf import XML, parse, refuse_entities

EVERYTHING = "CONSTRUCT { ?head ?relation ?tail } WHERE { ?head ?relation ?tail }"
LARGEST_ANSWER = 1 << 30  # bytes, on the disk
KNOWN = ("application/n-triples", "text/turtle", XML, "application/n-quads")


class SparqlReader(Reader):
    """``sparql+https://host/query``, or any http(s) address; the query is ``--query`` or everything."""

    name = "sparql"
    turn = 0
    example = "sparql+https://example.org/query"

    def reads(self, source: str) -> bool:
        return source.startswith(("http://", "https://", "sparql+http://", "sparql+https://"))

    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        address = source.removeprefix("sparql+")
        query = options.query or EVERYTHING
        if "CONSTRUCT" not in query.upper() and "DESCRIBE" not in query.upper():
            raise ReadError(
                source, "the query must be a CONSTRUCT (or DESCRIBE): it has to return statements."
            )
        if not 0 < options.timeout < 1e6:
            raise ReadError(source, f"--timeout is a number of seconds, found {options.timeout}.")
        with tempfile.TemporaryFile() as body:
            media_type = _answered(source, address, query, body, options.timeout)
            if media_type in ("text/html", "application/json", "application/sparql-results+json"):
                raise ReadError(
                    source, f"answered {media_type}, not RDF: is this the address of the query endpoint?"
                )
            chosen = media_type if media_type in KNOWN else KNOWN[0]
            if chosen == XML:
                body.seek(0)
                refuse_entities(body, f"the answer of {source}")
            body.seek(0)
            return parse(body, chosen, f"the answer of {source}", options, names)


def _answered(source: str, address: str, query: str, body: IO[bytes], timeout: float) -> str:
    """Fetch an answer onto the disk, all of it before the deadline, and say what it is.

    Whoever answers a byte now and then is never late by the clock of one read: the whole is done beside, and left when its time is over.
    """
    over, failed, found = threading.Event(), [], []

    def fetch() -> None:
        try:
            found.append(_fetch(source, address, query, body, timeout, over))
        except BaseException as error:
            failed.append(error)

    beside = threading.Thread(target=fetch, daemon=True)
    beside.start()
    beside.join(timeout)
    if beside.is_alive():
        over.set()
        beside.join(1)
        raise ReadError(
            source,
            f"has not answered in full after {timeout:g} seconds. Raise --timeout, or ask for less with --query.",
        )
    if failed:
        raise failed[0]
    return found[0]


def _fetch(
    source: str, address: str, query: str, body: IO[bytes], timeout: float, over: threading.Event
) -> str:
    try:
        request = urllib.request.Request(
            address,
            data=urllib.parse.urlencode({"query": query}).encode(),
            headers={"Accept": "application/n-triples", "User-Agent": "veilgraph"},
        )
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            media_type = str(answer.headers.get_content_type())
            promised, size = int(answer.headers.get("Content-Length") or -1), 0
            while not over.is_set() and (block := answer.read1(1 << 20)):
                size += len(block)
                if max(size, promised) > LARGEST_ANSWER:
                    raise ReadError(
                        source, f"answers more than {LARGEST_ANSWER >> 20} MiB. Ask for less with --query."
                    )
                body.write(block)
    except urllib.error.HTTPError as error:
        raise ReadError(source, f"the endpoint answered {error.code} {error.reason}: {_why(error)}") from None
    except (urllib.error.URLError, OSError, ValueError, OverflowError, http.client.HTTPException) as error:
        reason = str(getattr(error, "reason", "") or error)
        raise ReadError(
            source, f"cannot be reached: {reason}. Check the address, or raise --timeout."
        ) from None
    if promised > size:
        raise ReadError(source, f"broke off after {size:,} of {promised:,} bytes. Try again.")
    return media_type


def _why(error: urllib.error.HTTPError) -> str:
    """What an endpoint says is wrong, if it says it in order."""
    try:
        with error:
            return error.read(300).decode("utf-8", "replace").strip().replace("\n", " ")
    except (OSError, ValueError, http.client.HTTPException):
        return "and broke off"
