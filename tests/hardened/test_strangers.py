"""Files of strangers that reach for something: a server of theirs, other files of ours, or all the time there is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from veilgraph.errors import ConfigError, InputError
from veilgraph.load import Graph, load
from veilgraph.mark import mark, mark_by_rules
from veilgraph.mark.query import _answers, refuse_service
from veilgraph.mark.rules import Rules

ASKS = "SELECT ?h ?r ?t WHERE { ?h ?r ?t . %s <http://127.0.0.1:%d/> { ?x ?y ?z } }"


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A server that writes down what it is asked."""
    heard: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def log_message(self, *given: object) -> None:
            pass

        def do_POST(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/sparql-results+json")
            self.end_headers()
            self.wfile.write(b'{"head":{"vars":["x"]},"results":{"bindings":[]}}')

        do_GET = do_POST

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], heard
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def few(tmp_path: Path) -> Graph:
    (tmp_path / "few.tsv").write_text("".join(f"urn:p{i}\turn:has\turn:d{i % 3}\n" for i in range(4)))
    return load(tmp_path / "few.tsv")


@pytest.mark.parametrize(
    "word",
    [
        "SERVICE",
        "service SILENT",
        "\\u0053ERVICE",
        "SERV\\U00000049CE",
        '#\n"""a""" SERVICE',
        "true SERVICE",
        "\u017fervice",
    ],
)
def test_a_query_asks_no_other_server(word: str, few: Graph) -> None:
    with listening() as (port, heard):
        with pytest.raises(InputError, match=r"SERVICE|cannot be run"):
            mark(few, query=ASKS % (word, port))
        if "\\" not in word:  # and where the words would have passed, the process that asks can open nothing
            with pytest.raises(InputError, match="cannot be run"):
                _answers(b"<urn:a> <urn:b> <urn:c> .\n", ASKS % ("SERVICE", port))
        assert heard == []


@pytest.mark.parametrize(
    "query",
    [
        "?a<?b#>'''\n)SERVICE?x#'''>", "<b:c#>\"\"\"\n) SERVICE ?x {}", "?a ?b 5SERVICE<x>{}", "?a ?b 1e5SERVICE<x>{}", "falseSERVICE<x>",
        "ex:a\\' SERVICE ex:b\\'", "?c.SERVICE<x>{}", "?c}SERVICE?x{}", "\\u005cu0053ERVICE", "'a'SERVICE ?x {}",
    ],
)  # fmt: skip
def test_the_word_is_found_however_it_is_hidden(query: str) -> None:
    with pytest.raises(InputError, match=r"SERVICE|escapes"):
        refuse_service(query)


def test_longer_names_may_hold_the_word(few: Graph) -> None:
    for query in (
        "CONSTRUCT { ?h <hasService> ?t } WHERE { ?h <urn:service> ?t }",
        "PREFIX ex: <http://a.org/service/1#> SELECT ?service ?customerservice { ?service ex:service-x ex:dept5Service }",
    ):
        refuse_service(query)
    every = mark(few, query="SELECT ?h ?r ?t WHERE { ?h ?r ?t }")
    assert every.masks["train"].all()


def test_a_query_has_its_time_and_memory(few: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEILGRAPH_LIMITS", "query=2")
    wide = " . ".join(f"?a{i} ?b{i} ?c{i}" for i in range(14))
    sizes = " + ".join(f"STRLEN(STR(?a{i}))" for i in range(14))
    with pytest.raises(InputError, match="VEILGRAPH_LIMITS=query=NUMBER"):
        mark(few, query=f"SELECT ?h ?r ?t WHERE {{ ?h ?r ?t . {wide} . FILTER({sizes} = 99999) }}")


def test_rules_beside_a_mapping_name_relations_and_types_alone(few: Graph, tmp_path: Path) -> None:
    for rule in ("query: 'SELECT ?h ?r ?t WHERE { ?h ?r ?t }'", "statements: /etc/passwd"):
        (tmp_path / "their.marks.yaml").write_text(f"rules:\n- relation: urn:has\n- {rule}\n")
        with pytest.raises(InputError, match="not applied unasked"):
            Rules().marks(few, tmp_path / "their.marks.yaml")
    (tmp_path / "their.marks.yaml").write_text("rules:\n- relation: urn:has\n")
    assert Rules().marks(few, tmp_path / "their.marks.yaml") is not None


def test_rules_fetch_nothing(few: Graph, tmp_path: Path) -> None:
    with listening() as (port, heard):
        for where in (
            f"http://127.0.0.1:{port}/q",
            f"sparql+http://127.0.0.1:{port}/q",
            "builtin:hospital",
            ["a"],
        ):
            with pytest.raises(ConfigError, match="file of this machine"):
                mark_by_rules(few, {"rules": [{"statements": where}]})
        assert heard == []
    found = mark_by_rules(few, {"rules": [{"statements": str(tmp_path / "few.tsv")}]})
    assert found.masks["train"].all()
