"""Files of strangers that reach for something: a server of theirs, other files of ours, or all the time there is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from veilgraph.disk import sealed
from veilgraph.errors import ConfigError, InputError, RunError, UsageError
from veilgraph.layout import MANIFEST
from veilgraph.limits import read_yaml_text
from veilgraph.load import Graph, load, save
from veilgraph.load.mapping import fit
from veilgraph.load.queries import why_not
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


# --- saved graphs ---------------------------------------------------------------------------------------------------------
def forged(graph: Graph, folder: Path, **edits: object) -> Path:
    """A saved graph whose manifest says something else, sealed again."""
    save(graph, folder)
    manifest = yaml.safe_load((folder / MANIFEST).read_text(encoding="utf-8"))
    for key, value in edits.items():
        both = isinstance(value, dict) and isinstance(manifest.get(key), dict)
        manifest[key] = {**manifest[key], **value} if both else value  # type: ignore[dict-item]
    (folder / MANIFEST).write_text(sealed(yaml.safe_dump(manifest, sort_keys=False)), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "name", ["../own/train", "/tmp/x", "*", ".hidden", "entities", "a/b", "a\x00", 5, ""]
)
def test_no_split_is_a_path(name: object, few: Graph, tmp_path: Path) -> None:
    save(few, tmp_path / "own")
    before = (tmp_path / "own" / "train.parquet").read_bytes()
    pack = forged(few, tmp_path / "pack", splits={name: 4})
    with pytest.raises(RunError, match="plain names"):
        load(pack)
    with pytest.raises(InputError, match="no split can be called"):
        Graph(few.entities, few.relations, {"train": few.train, name: few.train})  # type: ignore[dict-item]
    assert (tmp_path / "own" / "train.parquet").read_bytes() == before


def test_a_manifest_does_not_say_what_may_be_deleted(few: Graph, tmp_path: Path) -> None:
    for number, name in enumerate(("*", "mine")):
        pack = forged(few, tmp_path / f"g{number}", splits={name: 4})
        (pack / "mine.parquet").write_bytes(b"of somebody else")
        with pytest.raises(UsageError, match=r"mine\.parquet"):
            save(few, pack, force=True)
        assert (pack / "mine.parquet").read_bytes() == b"of somebody else"


@pytest.mark.parametrize("name", ["/proc/self/pagemap", "../../etc/passwd", ".x", "a/b"])
def test_no_hash_is_of_a_file_elsewhere(name: str, few: Graph, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(RunError, match="no file of a graph"):
        load(forged(few, tmp_path / "pack", hashes={name: "0"}))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "extra",
    [
        [1], {"mapping": 5}, {"mapping": "../x"}, {"held_out": "abc"}, {"held_out": [10**30]}, {"held_out": [[1]]}, {"decided_under": [5]},
        {"decided_under": [{"what": "x"}]}, {"decided_from": 5}, {"left_out": 3},
    ],
)  # fmt: skip
def test_what_a_manifest_says_beside_is_of_its_kind(extra: object, few: Graph, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"extra|than belongs there"):
        load(forged(few, tmp_path / "pack", extra=extra))


def test_what_was_saved_is_read(few: Graph, tmp_path: Path) -> None:
    extra = {"mapping": "mimic-iii", "left_out": ["a"], "held_out": [0], "decided_from": ["x"]}
    graph = Graph(few.entities, few.relations, {"train": few.train, "known-2.b": few.train}, extra=extra)
    again = load(save(graph.with_marks(mark(graph, relations=["urn:has"])), tmp_path / "g"))
    assert again.fingerprint == graph.fingerprint
    assert dict(again.extra) == extra


# --- what takes for ever --------------------------------------------------------------------------------------------------
def test_a_query_of_a_mapping_is_checked_in_a_moment(tmp_path: Path) -> None:
    began = time.monotonic()
    for count in (90, 3000, 90_000):
        nested = "SELECT x FROM t" + "".join(f", a{i} AS (" for i in range(count)) + ")" * count
        assert (why_not(nested) is None) == (count < 100)
    beside = "WITH " + ", ".join(f"a{i} AS (SELECT x FROM t)" for i in range(2000)) + " SELECT x FROM a1"
    assert why_not(beside) is None
    assert why_not(beside.replace("a1999 AS (SELECT x FROM t)", "a1999 AS (SELECT x FROM a1999)")) is not None
    assert time.monotonic() - began < 3


def test_maps_that_share_everything_end(tmp_path: Path) -> None:
    began, prefix, number = time.monotonic(), "@prefix rr: <http://www.w3.org/ns/r2rml#> .\n", 6000
    shared = "".join(f"_:c rr:x _:c{i} . _:c{i} rr:y 1 .\n" for i in range(number))
    maps = "".join(f"<#m{i}> rr:logicalTable _:l ; rr:x _:c .\n" for i in range(number))
    logical = '_:l rr:tableName "t" .\n'
    for text in (
        logical + shared + maps,
        logical + "".join(f"_:l rr:z {i} .\n" for i in range(number)) + maps,
    ):
        (tmp_path / "m.ttl").write_text(prefix + text)
        with pytest.raises(InputError, match="stand for too much"):
            fit(tmp_path / "m.ttl", {"t": {"x"}})
    spaces = " " * 100_000
    (tmp_path / "m.ttl").write_text(f'{prefix}<#m> rr:logicalTable [ rr:tableName "a{spaces};{spaces}" ] .')
    with pytest.raises(InputError, match="no table or column"):
        fit(tmp_path / "m.ttl", {"t": {"x"}})
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "number", ["1" + ":1" * 400_000, "0x" + "f" * 20_000, "1" + ":1" * 2000 + ".5", "9" * 5000]
)
def test_no_number_of_a_file_takes_long_or_cannot_be_said(number: str, few: Graph, tmp_path: Path) -> None:
    began = time.monotonic()
    for text in (
        f"per_unit: {number}\nrules:\n- relation: urn:has\n",
        f"rules:\n- random_share: 0.5\n  seed: {number}\n",
    ):
        (tmp_path / "r.yaml").write_text(text)
        with pytest.raises(InputError, match="characters: no number here"):
            mark_by_rules(few, tmp_path / "r.yaml")
    assert time.monotonic() - began < 3


def test_numbers_of_yaml_are_plain(few: Graph) -> None:
    text = "[5, -5, +7, 0, 1.5, -2.5e+3, .inf, 12:30, 12:30.5, 0x10, 017, 1_000, 9223372036854775807, 99999999999999999999]"
    assert read_yaml_text(text) == [
        5, -5, 7, 0, 1.5, -2500.0, float("inf"), "12:30", "12:30.5", "0x10", "017", "1_000", 2**63 - 1, "99999999999999999999",
    ]  # fmt: skip
    assert read_yaml_text(yaml.safe_dump({"a": 2**62, "b": "0x10", "c": "12:30"})) == {
        "a": 2**62,
        "b": "0x10",
        "c": "12:30",
    }
    with pytest.raises(ConfigError, match="a seed must be a whole number"):
        mark_by_rules(few, read_yaml_text("rules:\n- random_share: 0.5\n  seed: 0xffff\n"))
