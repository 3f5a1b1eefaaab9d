"""Bad input: file and line, what was expected, what was found — and nothing half-written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.conformance.test_readers import TRIPLES, endpoint
from veilgraph.errors import ConfigError, InputError, ReadError, RunError, UsageError
from veilgraph.load import load, save

BAD_FILES = {
    "few.tsv": (b"a\tr\tb\nc\tr\n", 2, "expected 3 columns, found 2"),
    "many.tsv": (b"a\tr\tb\nc\tr\td\te\n", 2, "expected 3 columns, found 4"),
    "first.tsv": (b"a r b\n", 1, "expected 3 columns"),
    "empty_field.tsv": (b"a\tr\tb\nc\t\td\n", 2, "the relation is empty"),
    "utf8.tsv": (b"a\tr\tb\n\xff\xfe\tr\td\n", 2, "not UTF-8"),
    "first_utf8.tsv": (b"\xff\tr\td\n", 1, "not UTF-8"),
    "long.tsv": (b"a\tr\tb\n" + b"x" * (10 << 20) + b"\tr\tb\n", None, "longer than|too long"),
    "long_only.tsv": (b"x" * (10 << 20), None, "longer than"),
    "empty.tsv": (b"", None, "empty"),
    "blank.tsv": (b"\n\n", 1, "expected 3 columns"),
    "quotes.csv": (b'"a","r","b"\n"c","r"\n', 2, "expected 3 columns, found 2"),
    "broken.ttl": (b"@prefix u: <urn:> .\nu:a u:b u:c .\nu:a u:b .\n", 3, "not valid turtle"),
    "broken.nt": (b"<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> .\n", 2, "not valid n-triples"),
    "broken.rdf": (b"<rdf:RDF>\n<oops", None, "not valid|cannot be read"),
    "utf8.nt": (b"<urn:a> <urn:b> <urn:\xff> .\n", None, "not valid|cannot be read"),
    "literals.nt": (b'<urn:a> <urn:b> "text" .\n', None, "--literals entity"),
    "fake.parquet": (b"not parquet at all", None, "not a readable Parquet"),
    "cut.tsv.gz": (gzip.compress(b"a\tr\tb\n" * 5000)[:-30], None, "cannot be"),
    "fake.tsv.gz": (b"not gzip\tx\ty\n", None, "cannot be"),
    "spaces.tsv": (b"a\tr\tb\n   \nc\tr\td\n", 2, "expected 3 columns, found 1"),
    "quoted_nothing.csv": (b'a,r,b\nc,r,""\n', 2, "the tail is empty"),
    "wide.csv": (b"a,r," + b"x" * 300_000 + b"\nc,r\n", None, "CSV|columns"),
    "header.csv": (b"head,relation,tail\na,r,b\n", 1, "looks like a header"),
    "glob[1].tsv": (b"a\tr\n", 1, "expected 3 columns"),
    "what.xyz": (b"a\tr\tb\n", None, "no reader"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file(name: str, tmp_path: Path) -> None:
    content, line, reason = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason) as caught:
        load(path)
    assert name in str(caught.value)
    if line is not None:
        assert f"line {line} of" in str(caught.value)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file"):
        load(tmp_path / "nothing.tsv")
    with pytest.raises(ReadError, match="directory"):
        load(tmp_path)
    with pytest.raises(InputError, match="built-in graph"):
        load("builtin:hospitl")


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("subject,predicate,object,since\na,r,b,2001\n")
    assert len(load(path, columns=("subject", "predicate", "object"))) == 1
    assert len(load(path, columns=("0", "1", "2"), header=True)) == 1
    with pytest.raises(ReadError, match="no column is called 'subjekt'"):
        load(path, columns=("subjekt", "predicate", "object"))
    with pytest.raises(ReadError, match="only 4"):
        load(path, columns=("0", "1", "9"))
    with pytest.raises(ReadError, match="three different"):
        load(path, columns=("0", "1", "1"))
    with pytest.raises(ConfigError, match="has no option 'colums'"):
        load(path, colums=3)


def test_endpoint_that_cannot_be_reached_or_answers_nonsense() -> None:
    with pytest.raises(ReadError, match="cannot be reached"):
        load("http://127.0.0.1:9/query", timeout=2.0)
    with endpoint(TRIPLES) as address:
        with pytest.raises(ReadError, match="400"):
            load(address, query="CONSTRUCT { oops")
        with pytest.raises(ReadError, match="CONSTRUCT"):
            load(address, query="SELECT * WHERE { ?s ?p ?o }")


def test_small_things_that_must_not_be_misread(tmp_path: Path) -> None:
    odd = tmp_path / "g[1].tsv"
    odd.write_text("a\tr\tb\n")
    (tmp_path / "g1.tsv").write_text("x\ty\tz\n")
    assert list(load(odd).entities) == ["a", "b"]
    upper = tmp_path / "FACTS.CSV"
    upper.write_text("a;r;b\n")
    assert len(load(upper, separator=";")) == 1
    turtle = tmp_path / "blank.ttl"
    turtle.write_text("@prefix u: <urn:> . [] u:likes u:b . u:b u:likes [ u:likes u:c ] .")
    assert load(turtle).fingerprint == load(turtle).fingerprint
    with pytest.raises(ConfigError, match="one plain character"):
        load(upper, separator="||")
    with pytest.raises(ConfigError, match="seed"):
        load("builtin:hospital", patients=20, seed=-1)


def test_findings_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "g.tsv"
    path.write_text("a\tr\tb\na\tr\tb\n")
    load(path)
    assert "duplicate" in caplog.text


def test_an_answer_that_breaks_off(tmp_path: Path) -> None:
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/n-triples")
            self.send_header("Content-Length", "5000")
            self.end_headers()
            self.wfile.write(b"<urn:a> <urn:b> <urn:c> .\n")

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ReadError, match="broke off"):
            load(f"http://127.0.0.1:{server.server_address[1]}/")
        server.shutdown()
    for address in ("http://127.0.0.1:abc/", "http://[::1/", "http://a b/"):
        with pytest.raises(ReadError):
            load(address, timeout=1.0)


def test_saving_refuses_what_is_there_and_leaves_nothing_behind(tmp_path: Path, hospital) -> None:  # type: ignore[no-untyped-def]
    save(hospital, tmp_path / "g")
    with pytest.raises(UsageError, match="exists already"):
        save(hospital, tmp_path / "g")
    save(hospital, tmp_path / "g", force=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(UsageError, match="no graph"):
        save(hospital, tmp_path / "other", force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g", "other"]


def test_damaged_graph_folder(tmp_path: Path, hospital) -> None:  # type: ignore[no-untyped-def]
    save(hospital, tmp_path / "g")
    (tmp_path / "g" / "train.parquet").write_bytes(b"broken")
    with pytest.raises(RunError, match="not a readable graph folder"):
        load(tmp_path / "g")
