"""Everything that reads what it did not write. A target is a name, good inputs, and a function that reads one: it returns, or refuses."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import yaml

from tests.serve.shop import make_shop
from veilgraph import load, resume, train
from veilgraph.account.certificate import differences
from veilgraph.cli.shown import visible
from veilgraph.config import TrainConfig
from veilgraph.files import read_yaml
from veilgraph.load import Graph, save, split
from veilgraph.load.descriptions import read_descriptions
from veilgraph.load.labels import read_labels
from veilgraph.load.mapping import SHIPPED, fit
from veilgraph.mark import mark, mark_by_rules, suggest
from veilgraph.run import open_run
from veilgraph.run.verify import verify

QUICK: dict[str, Any] = {"model": "distmult", "dimension": 8, "epochs": 2, "threads": 1, "validate_every": 0}
LINES = "urn:p/1\turn:has\turn:d/1\nurn:p/2\turn:has\turn:d/1\nurn:p/2\turn:has\turn:d/é\nurn:p/3\turn:on\turn:w/1\n"
TURTLE = (
    '@prefix u: <urn:u:> .\nu:a u:b u:c ; u:d [ u:e u:f ] , "text"@en .\nu:g u:h ( u:i u:j ) .\n'
    'u:a <http://www.w3.org/2000/01/rdf-schema#comment> "An a."@en .\n'
)
XML = (
    '<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY u "urn:u:">]>\n<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:u:">\n'
    '<r:Description r:about="&u;a"><u:b r:resource="urn:u:c"/><u:n><r:Description r:about="urn:u:n"/></u:n></r:Description>\n</r:RDF>\n'
)
MAPPING = (
    '@prefix rr: <http://www.w3.org/ns/r2rml#> .\n<#p> rr:logicalTable [ rr:tableName "patient" ] ;\n'
    'rr:subjectMap [ rr:template "urn:p/{id}" ] ;\nrr:predicateObjectMap [ rr:predicate <urn:on> ; rr:objectMap [ rr:template "urn:w/{ward}" ] ] .\n'
    '<#q> rr:logicalTable [ rr:sqlQuery "SELECT id, ward FROM patient" ] ; rr:subjectMap [ rr:template "urn:q/{id}" ] ;\n'
    'rr:predicateObjectMap [ rr:predicate <urn:at> ; rr:objectMap [ rr:column "ward" ; rr:termType rr:IRI ] ] .\n'
)
MOVIELENS = {
    "ratings.tsv": "user\tmovie\trating\ttimestamp\n1\t1\t5\t100\n1\t2\t3\t101\n2\t1\t4\t99\n",
    "users.tsv": "user\tage\tgender\toccupation\n1\t24\tM\ttechnician\n2\t53\tF\tother\n",
    "items.tsv": "movie\ttitle\tgenres\n1\tToy Story\tAnimation|Comedy\n2\tGoldenEye\tAction\n",
}


@dataclass(frozen=True)
class Target:
    """``seeds``: files by name, of one input of which one is changed; ``read`` gets the folder they lie in and that file's name."""

    name: str
    seeds: Mapping[str, bytes]
    read: Callable[[Path, str], object]
    weight: int = 1


class Place:
    """Good graphs and runs, made once, that targets are made from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "made").exists():
            self._make()
        self.graph = load(folder / "graph")

    def _make(self) -> None:
        graph = split(load("builtin:hospital", patients=30), valid=0.1, test=0.1)
        marked = graph.with_marks(mark(graph, relations=["has*"], unit="head", per_unit=5))
        save(marked, self.folder / "graph")
        source = load(self.folder / "graph")
        train(source, out=self.folder / "ordinary", **QUICK)
        train(source, out=self.folder / "private", epsilon=4.0, private_steps=4, **QUICK)
        train(source, out=self.folder / "counts", epsilon=4.0, **{**QUICK, "model": "marginals"})

        class Stop(Exception):
            pass

        def stop(progress: Any) -> None:
            if progress.epoch == 2:
                raise Stop

        with suppress(Stop):
            train(
                source, out=self.folder / "unfinished", epsilon=4.0, private_steps=40, order="interleaved", checkpoint_seconds=0,
                listener=stop, **{**QUICK, "epochs": 4},
            )  # fmt: skip
        (self.folder / "shop").mkdir()
        make_shop(self.folder / "shop")
        (self.folder / "made").touch()

    def bytes_of(self, name: str) -> dict[str, bytes]:
        return {
            path.name: path.read_bytes() for path in sorted((self.folder / name).iterdir()) if path.is_file()
        }


def _load(folder: Path, name: str) -> Graph:
    found = load(folder / name)
    assert all(len(visible(one)) >= 0 for one in found.entities)
    return found


def _database(folder: Path, name: str) -> object:
    path = folder / "h.sqlite"
    if not path.exists():
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE patient (id INTEGER, ward TEXT)")
        connection.execute("INSERT INTO patient VALUES (1, 'north'), (2, 'south')")
        connection.commit()
        connection.close()
    whole = path.read_bytes()
    try:
        return load(f"sqlite:///{path}", mapping=str(folder / name))
    finally:
        assert path.read_bytes() == whole, "a mapping wrote into the database"


def _run(place: Place) -> Callable[[Path, str], object]:
    def read(folder: Path, name: str) -> object:
        run = open_run(folder)
        found = verify(run, place.graph)
        run.certificate  # noqa: B018
        run.trace  # noqa: B018
        answers = run.predict(place.graph.entities[0], place.graph.relations[0], top=3)
        assert len(answers) == 3
        return found, run.epsilon

    return read


def _unfinished(place: Place) -> Callable[[Path, str], object]:
    def read(folder: Path, name: str) -> object:
        return resume(folder, graph=place.graph, moved=True)

    return read


def _rules(place: Place) -> Callable[[Path, str], object]:
    def read(folder: Path, name: str) -> object:
        return mark_by_rules(place.graph, folder / name)

    return read


def _certificate(folder: Path, name: str) -> object:
    try:
        found = json.loads((folder / name).read_bytes())
    except (ValueError, RecursionError):
        return None
    return differences(found, found) if isinstance(found, dict) and "hashes" in found else None


def _terms(folder: Path, name: str) -> object:
    from veilgraph.federate.terms import Terms

    return Terms.of((folder / name).read_text(encoding="utf-8", errors="replace"))


def _message(folder: Path, name: str) -> object:
    from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

    from veilgraph.federate import messages
    from veilgraph.federate.member import check_rows

    array = Array(dtype="float32", shape=(2, 4), stype="numpy.ndarray", data=(folder / name).read_bytes())
    content = RecordDict({"arrays": ArrayRecord({"rows": array}), "facts": ConfigRecord({"round": 1})})
    message = SimpleNamespace(content=content, has_content=lambda: True)
    try:
        check_rows(messages.array(message, "rows", 10_000), (2, 4))  # type: ignore[arg-type]
    except messages.Unreadable:
        return None
    return messages.facts(message)  # type: ignore[arg-type]


REQUESTS = {
    "recommend": {
        "method": "POST",
        "path": "/v1/recommend",
        "body": '{"user": "user/01", "top": 3, "draw": 1}',
        "role": "reader",
    },
    "address": {"method": "GET", "path": "/v1/recommend?user=user/02&draw=2", "role": "reader"},
    "original": {"method": "POST", "path": "/v1/original", "body": '{"user": "user/01"}', "role": "curator"},
    "budget": {"method": "POST", "path": "/v1/budget", "body": '{"user": "user/01"}', "role": "reader"},
    "predict": {
        "method": "POST",
        "path": "/v1/predict",
        "body": '{"relation": "stands", "head": "item/01", "top": 3}',
        "role": "reader",
    },
    "certificate": {"method": "GET", "path": "/v1/certificate", "role": "reader"},
    "users": {"method": "GET", "path": "/v1/users?begins=user", "role": "curator"},
    "metrics": {"method": "GET", "path": "/metrics", "role": ""},
}


def _http(place: Place) -> Callable[[Path, str], object]:
    """Whatever is asked, no answer is an error of ours, and no reader sees an original."""
    from starlette.testclient import TestClient

    from veilgraph.serve.app import create
    from veilgraph.serve.service import Service, Terms
    from veilgraph.serve.store import open_store

    @cache
    def door() -> tuple[TestClient, dict[str, str]]:
        store = open_store(str(Path(tempfile.mkdtemp()) / "store.sqlite"))
        keys = {role: store.add_key(role, role) for role in ("reader", "curator")}
        service = Service.open(place.folder / "shop" / "run", store, Terms(top=5))
        return TestClient(create(service, rate=1e9), raise_server_exceptions=False), keys

    def read(folder: Path, name: str) -> object:
        client, keys = door()
        data = (folder / name).read_bytes()
        first, _, body = data.partition(b"\n")
        words = first.decode("latin-1").split(" ")
        method, path, role = (*words, "", "", "")[:3]
        try:
            answer = client.request(
                method or "GET",
                "/" + path.lstrip("/"),
                content=body,
                headers={"Authorization": f"Bearer {keys.get(role, role)}"},
            )
        except (ValueError, UnicodeError, TypeError, OSError):
            return None  # no request at all
        except Exception as error:
            if type(error).__module__.startswith(("httpx", "httpcore", "h11")):
                return None
            raise
        assert answer.status_code < 500, f"{answer.status_code} {answer.text[:300]}"
        assert not (role == "reader" and "score" in answer.text and "/v1/original" in path)
        return answer.status_code

    return read


def targets(place: Place) -> list[Target]:
    """All of them."""
    graph = place.graph
    rules = yaml.safe_dump(
        {
            "unit": "head",
            "per_unit": 4,
            "rules": [{"relation": "has*"}, {"type": "drug"}, {"random_share": 0.1, "seed": 3}],
        }
    )
    config = yaml.safe_dump(
        {**QUICK, "epsilon": 2.0, "delta": 1e-6, "mechanism": "lazy", "clip": 0.5, "optimiser": "adam"}
    )
    parquet = Path(place.folder / "names.parquet")
    if not parquet.exists():
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"head": ["a", "b"], "relation": ["r", "r"], "tail": ["c", "d"]}), parquet)
    import io

    npy = io.BytesIO()
    np.save(npy, np.ones((2, 4), np.float32))
    labels = "".join(f"{name}\tone\n" for name in graph.entities[:20])

    def labelled(folder: Path, name: str) -> object:
        return read_labels(graph, folder / name)

    def mapping(folder: Path, name: str) -> object:
        return fit(
            folder / name, {"patients": {"subject_id", "gender"}, "admissions": {"subject_id", "hadm_id"}}
        )

    def settings(folder: Path, name: str) -> object:
        return TrainConfig.of(read_yaml(folder / name))

    def suggestion(folder: Path, name: str) -> object:
        return suggest(graph.with_marks(mark_by_rules(graph, folder / name)))

    tables = {
        "patients.csv": b"Id,RACE,GENDER\n1,white,F\n2,asian,M\n",
        "conditions.csv": b"PATIENT,CODE\n1,44\n2,22\n",
    }
    return [
        Target("tsv", {"a.tsv": LINES.encode(), "a.csv": LINES.replace("\t", ",").encode()}, _load, 3),
        Target("gzip", {"a.tsv.gz": gzip.compress(LINES.encode(), mtime=0)}, _load, 2),
        Target("parquet", {"a.parquet": parquet.read_bytes()}, _load, 3),
        Target("turtle", {"a.ttl": TURTLE.encode(), "a.nt": b"<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> _:x .\n", "a.trig": b"{<urn:a> <urn:b> <urn:c>}",
                          "a.nq": b"<urn:a> <urn:b> <urn:c> <urn:g> .\n"}, _load, 4),
        Target("rdf/xml", {"a.rdf": XML.encode()}, _load, 3),
        Target("mapping", {"m.ttl": MAPPING.encode()}, _database, 1),
        Target("shipped mapping", {"m.ttl": (SHIPPED / "mimic-iii.ttl").read_bytes()}, mapping, 1),
        Target("tables", tables, lambda folder, name: load(f"tables:{folder}", mapping="synthea"), 1),
        Target("movielens", {k: v.encode() for k, v in MOVIELENS.items()}, lambda folder, name: load(f"movielens:{folder}"), 2),
        Target("interactions", {"i.csv": b"user,item,timestamp\n1,2,3\n2,2,4\n"}, lambda folder, name: load(f"interactions:{folder / name}"), 2),
        Target("descriptions", {"d.tsv": b"a\tA thing.\nb\tAnother.\n"}, lambda folder, name: read_descriptions(folder / name), 1),
        Target("labels", {"labels.tsv": labels.encode()}, labelled, 1),
        Target("rules", {"r.yaml": rules.encode()}, _rules(place), 4),
        Target("suggest", {"r.yaml": rules.encode()}, suggestion, 1),
        Target("settings", {"s.yaml": config.encode()}, settings, 4),
        Target("graph", place.bytes_of("graph"), lambda folder, name: load(folder), 4),
        Target("run", place.bytes_of("private"), _run(place), 4),
        Target("run without a promise", place.bytes_of("ordinary"), _run(place), 2),
        Target("run of counts", place.bytes_of("counts"), _run(place), 2),
        Target("unfinished run", place.bytes_of("unfinished"), _unfinished(place), 1),
        Target("certificate", {"certificate.json": place.bytes_of("private")["certificate.json"]}, _certificate, 1),
        Target("terms", {"t.json": json.dumps({"rounds": 3, "training": {"model": "transe"}, "strategy": "fede"}).encode()}, _terms, 2),
        Target("http", {name: f"{one['method']} {one['path']} {one['role']}\n{one.get('body', '')}".encode() for name, one in REQUESTS.items()},
               _http(place), 4),
        Target("message", {"rows.npy": npy.getvalue()}, _message, 1),
    ]  # fmt: skip


def lay_out(target: Target, changed: str, data: bytes, folder: Path) -> None:
    """The input's files in a fresh folder, one of them changed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in target.seeds.items():
        (folder / name).write_bytes(data if name == changed else content)
