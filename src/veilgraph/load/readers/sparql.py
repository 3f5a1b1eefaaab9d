"""A SPARQL endpoint over HTTP: what a CONSTRUCT query returns."""

from __future__ import annotations

import http.client
import io
import urllib.error
import urllib.parse
import urllib.request

from veilgraph.errors import ReadError
from veilgraph.load.readers.base import Names, Parts, Reader, ReadOptions
from veilgraph.load.readers.rdf import parse

EVERYTHING = "CONSTRUCT { ?head ?relation ?tail } WHERE { ?head ?relation ?tail }"
LARGEST_ANSWER = 4 << 30


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
        try:
            request = urllib.request.Request(
                address,
                data=urllib.parse.urlencode({"query": query}).encode(),
                headers={"Accept": "application/n-triples", "User-Agent": "veilgraph"},
            )
            with urllib.request.urlopen(request, timeout=options.timeout) as answer:
                media_type = answer.headers.get_content_type()
                promised = int(answer.headers.get("Content-Length") or -1)
                body = answer.read(LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            reason = error.read(300).decode("utf-8", "replace").strip().replace("\n", " ")
            raise ReadError(source, f"the endpoint answered {error.code} {error.reason}: {reason}") from None
        except (
            urllib.error.URLError,
            OSError,
            ValueError,
            OverflowError,
            http.client.HTTPException,
        ) as error:
            reason = str(getattr(error, "reason", "") or error)
            raise ReadError(
                source, f"cannot be reached: {reason}. Check the address, or raise --timeout."
            ) from None
        if promised > len(body) and len(body) <= LARGEST_ANSWER:
            raise ReadError(source, f"broke off after {len(body):,} of {promised:,} bytes. Try again.")
        if len(body) > LARGEST_ANSWER:
            raise ReadError(
                source, f"answered more than {LARGEST_ANSWER >> 30} GiB. Ask for less with --query."
            )
        if media_type in ("text/html", "application/json", "application/sparql-results+json"):
            raise ReadError(
                source, f"answered {media_type}, not RDF: is this the address of the query endpoint?"
            )
        known = ("application/n-triples", "text/turtle", "application/rdf+xml", "application/n-quads")
        return parse(
            io.BytesIO(body),
            media_type if media_type in known else known[0],
            f"the answer of {source}",
            options,
            names,
        )
