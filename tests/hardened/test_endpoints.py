"""Endpoints that drip, boast, laugh or break off; and folders that say where to call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.hardened.test_inputs import laughs
from veilgraph.errors import InputError, ReadError, RunError
from veilgraph.files import read_yaml
from veilgraph.load import load, save
from veilgraph.load.readers import sparql
from veilgraph.run import open_run
from veilgraph.run.verify import verify
from veilgraph.train import train

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    heard: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def log_message(self, *given: object) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            heard.append(self.path)
            with suppress(OSError):
                answer(self)
            self.close_connection = True

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/q", heard
        finally:
            server.shutdown()
            thread.join()


def said(
    kind: str, *blocks: bytes, wait: float = 0, times: int = 1, code: int = 200, **headers: str
) -> Answer:
    def answer(server: BaseHTTPRequestHandler) -> None:
        server.send_response(code)
        for name, value in {"Content-Type": kind, **headers}.items():
            server.send_header(name.replace("_", "-"), value)
        server.end_headers()
        for _ in range(times):
            for block in blocks:
                server.wfile.write(block)
                server.wfile.flush()
                time.sleep(wait)

    return answer


TRIPLES = "application/n-triples"


def test_an_answer_has_one_deadline() -> None:
    began = time.monotonic()
    with answering(said(TRIPLES, b"#", wait=0.2, times=50)) as (address, _):
        with pytest.raises(ReadError, match="not answered in full after 1 seconds"):
            load(address, timeout=1.0)
        assert time.monotonic() - began < 4


def test_an_answer_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sparql.LARGEST_ANSWER < 2 << 30
    monkeypatch.setattr(sparql, "LARGEST_ANSWER", 3 << 20)
    for answer in (
        said(TRIPLES, b"#" * (1 << 20), times=9),
        said(TRIPLES, b"#", Content_Length=str(1 << 40)),
    ):
        with answering(answer) as (address, _), pytest.raises(ReadError, match="answers more than 3 MiB"):
            load(address)


def test_entities_are_refused_in_answers_too() -> None:
    answer = said("application/rdf+xml", laughs(9).encode())
    with answering(answer) as (address, _), pytest.raises(InputError, match="entity"):
        load(address, literals="entity")
    small = laughs(1).replace("<u:b>&l0;</u:b>", '<u:b r:resource="urn:&l0;"/>')
    with answering(said("application/rdf+xml", small.encode())) as (address, _):
        assert list(load(address).entities) == ["urn:a", "urn:ha"]


@pytest.mark.parametrize(
    "answer",
    [
        said(TRIPLES, b"zz\r\nxx", code=500, Transfer_Encoding="chunked"), said(TRIPLES, b"abc", code=500, Content_Length="1000"),
        said(TRIPLES, b"zz\r\nxx", Transfer_Encoding="chunked"), said(TRIPLES, b"abc", Content_Length="1000"),
    ],
)  # fmt: skip
def test_an_answer_that_breaks_off_is_a_sentence(answer: Answer) -> None:
    def of_1_1(server: BaseHTTPRequestHandler) -> None:
        server.protocol_version = "HTTP/1.1"
        answer(server)

    with (
        answering(of_1_1) as (address, _),
        pytest.raises(ReadError, match=r"500|cannot be reached|broke off"),
    ):
        load(address, timeout=5.0)


def test_no_folder_says_where_to_call(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"p{i}\thas\td{i % 3}\n" for i in range(9)))
    save(load(tmp_path / "a.tsv"), tmp_path / "g")
    chosen = {"model": "distmult", "dimension": 4, "epochs": 1, "threads": 1, "validate_every": 0}
    with answering(said(TRIPLES, b"")) as (address, heard):
        folder = train(load(tmp_path / "g"), out=tmp_path / "r", **chosen).folder
        text = (folder / "config.yaml").read_text()
        (folder / "config.yaml").write_text(
            text.replace(f"graph: {read_yaml(folder / 'config.yaml')['graph']}", f"graph: {address}")
        )
        run = open_run(folder)
        assert run.graph_source == address
        assert run.known is None
        verify(run)
        with pytest.raises(RunError, match="--graph"):
            run.graph()
        assert heard == []
        assert run.graph(tmp_path / "g") is not None
