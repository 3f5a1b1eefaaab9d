"""What every reader must do: the same statements give the same graph, and bad input says where it is bad."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyoxigraph
import pytest

from veilgraph.load import load
from veilgraph.load.source import readers

STATEMENTS = [
    ("urn:a", "urn:likes", "urn:b"),
    ("urn:b", "urn:likes", "urn:c"),
    ("urn:a", "urn:knows", "urn:c"),
]
TRIPLES = "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in STATEMENTS)


@contextlib.contextmanager
def endpoint(triples: str) -> Iterator[str]:
    """A real SPARQL endpoint on loopback: an HTTP server in front of a pyoxigraph store."""
    store = pyoxigraph.Store()
    store.load(triples.encode(), "application/n-triples")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            query = urllib.parse.parse_qs(body)["query"][0]
            try:
                answer = "".join(f"{triple} .\n" for triple in store.query(query)).encode()
            except SyntaxError as error:
                self.send_error(400, "bad query", str(error))
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/n-triples")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/query"
        finally:
            server.shutdown()
            thread.join()


def _delimited(folder: Path) -> list[str]:
    tsv, csv, packed = folder / "g.tsv", folder / "g.csv", folder / "g.txt.gz"
    tsv.write_text("".join("\t".join(s) + "\n" for s in STATEMENTS))
    csv.write_text("".join(",".join(f'"{w}"' for w in s) + "\r\n" for s in STATEMENTS))
    with gzip.open(packed, "wt") as file:
        file.write("".join("\t".join(s) + "\n" for s in STATEMENTS).rstrip("\n"))
    return [str(tsv), str(csv), str(packed)]


def _parquet(folder: Path) -> list[str]:
    path = folder / "g.parquet"
    pl.DataFrame(STATEMENTS, schema=["head", "relation", "tail"], orient="row").write_parquet(path)
    return [str(path)]


def _rdf(folder: Path) -> list[str]:
    made = []
    for ending, text in {
        ".nt": TRIPLES,
        ".ttl": "@prefix u: <urn:> . u:a u:likes u:b ; u:knows u:c . u:b u:likes u:c .",
        ".nq": TRIPLES.replace(" .\n", " <urn:graph> .\n"),
        ".rdf": "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:u='urn:'>"
        "<rdf:Description rdf:about='urn:a'><u:likes rdf:resource='urn:b'/><u:knows rdf:resource='urn:c'/>"
        "</rdf:Description><rdf:Description rdf:about='urn:b'><u:likes rdf:resource='urn:c'/></rdf:Description></rdf:RDF>",
    }.items():
        path = folder / f"g{ending}"
        path.write_text(text)
        made.append(str(path))
    packed = folder / "packed.nt.gz"
    packed.write_bytes(gzip.compress(TRIPLES.encode()))
    return [*made, str(packed)]


def _folder(folder: Path) -> list[str]:
    made = folder / "splits"
    made.mkdir()
    (made / "train.tsv").write_text("".join("\t".join(s) + "\n" for s in STATEMENTS[:2]))
    (made / "test.nt").write_text(TRIPLES.splitlines()[2] + "\n")
    (made / "descriptions.tsv").write_text("urn:a\tthe first\n")
    return [str(made)]


SOURCES = {
    "delimited": _delimited,
    "parquet": _parquet,
    "rdf": _rdf,
    "folder": _folder,
    "sparql": None,
    "builtin": None,
    "database": None,  # tests/load/test_database.py
    "tables": None,
    "movielens": None,  # tests/load/test_interactions.py
    "interactions": None,
    "grail": None,  # tests/load/test_descriptions.py
}


@pytest.mark.parametrize("name", [n for n, make in SOURCES.items() if make])
def test_reads_the_same_graph(name: str, tmp_path: Path) -> None:
    for source in SOURCES[name](tmp_path):  # type: ignore[misc]
        graph = load(source)
        assert list(graph.entities) == ["urn:a", "urn:b", "urn:c"], source
        assert list(graph.relations) == ["urn:knows", "urn:likes"]
        named = {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.triples}
        assert named == set(STATEMENTS), source


def test_sparql_endpoint_gives_the_same_graph() -> None:
    with endpoint(TRIPLES) as address:
        graph = load(address)
        assert len(graph) == 3
        assert (
            graph.fingerprint
            != load(address, query="CONSTRUCT { ?a <urn:likes> ?b } WHERE { ?a <urn:likes> ?b }").fingerprint
        )


def test_builtin_is_seeded() -> None:
    first, again, other = (load("builtin:hospital", patients=60, seed=s) for s in (1, 1, 2))
    assert first.fingerprint == again.fingerprint != other.fingerprint


@pytest.mark.parametrize("reader", readers(), ids=lambda r: r.name)
def test_documents_itself(reader) -> None:  # type: ignore[no-untyped-def]
    assert type(reader).__doc__
    assert reader.example
    assert reader.reads(reader.example) or reader.name in ("folder", "grail")
