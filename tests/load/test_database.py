"""Databases through R2RML: real SQLite, real DuckDB, a real PostgreSQL server on loopback."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import sqlite3
from pathlib import Path

import pytest

from veilgraph.errors import InputError, ReadError, UnknownNameError
from veilgraph.load import Graph, load
from veilgraph.load.datasets import data_folder
from veilgraph.load.mapping import find_mapping, fit, shipped
from veilgraph.load.readers.database import hide_password
from veilgraph.run import open_run
from veilgraph.run.verify import verify
from veilgraph.train import train

pytest.importorskip("morph_kgc")

MAPPING = """
@prefix rr: <http://www.w3.org/ns/r2rml#> .
@prefix h: <urn:h:> .
<#patient> rr:logicalTable [ rr:tableName "patient" ] ;
    rr:subjectMap [ rr:template "urn:h:patient/{id}" ] ;
    rr:predicateObjectMap [ rr:predicate h:onWard ; rr:objectMap [ rr:template "urn:h:ward/{ward}" ] ] ;
    rr:predicateObjectMap [ rr:predicate h:bornIn ; rr:objectMap [ rr:template "urn:h:place/{birthplace}" ] ] .
<#diagnosis> rr:logicalTable [ rr:sqlQuery "SELECT patient, code FROM diagnosis WHERE code <> 'none'" ] ;
    rr:subjectMap [ rr:template "urn:h:patient/{patient}" ] ;
    rr:predicateObjectMap [ rr:predicate h:hasDiagnosis ; rr:objectMap [ rr:template "urn:h:diagnosis/{code}" ] ] .
<#surgery> rr:logicalTable [ rr:tableName "surgery" ] ;
    rr:subjectMap [ rr:template "urn:h:patient/{patient}" ] ;
    rr:predicateObjectMap [ rr:predicate h:underwent ; rr:objectMap [ rr:template "urn:h:surgery/{kind}" ] ] .
"""
TABLES = (
    "CREATE TABLE patient (id INTEGER, ward VARCHAR(20))",
    "INSERT INTO patient VALUES (1, 'north'), (2, 'south'), (3, NULL)",
    "CREATE TABLE diagnosis (patient INTEGER, code VARCHAR(20))",
    "INSERT INTO diagnosis VALUES (1, 'I10'), (2, 'I10'), (2, 'E 11'), (2, 'E 11'), (3, 'none')",
)
EXPECTED = {
    ("urn:h:patient/1", "urn:h:onWard", "urn:h:ward/north"),
    ("urn:h:patient/2", "urn:h:onWard", "urn:h:ward/south"),
    ("urn:h:patient/1", "urn:h:hasDiagnosis", "urn:h:diagnosis/I10"),
    ("urn:h:patient/2", "urn:h:hasDiagnosis", "urn:h:diagnosis/I10"),
    ("urn:h:patient/2", "urn:h:hasDiagnosis", "urn:h:diagnosis/E%2011"),
}


def named(graph: Graph) -> set[tuple[str, str, str]]:
    return {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.triples}


@pytest.fixture
def mapping(tmp_path: Path) -> str:
    path = tmp_path / "mapping.ttl"
    path.write_text(MAPPING, encoding="utf-8")
    return str(path)


def test_sqlite(tmp_path: Path, mapping: str) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "h.db")) as connection:
        for line in TABLES:
            connection.execute(line)
        connection.commit()
    graph = load(f"sqlite:///{tmp_path / 'h.db'}", mapping=mapping)
    assert named(graph) == EXPECTED
    assert graph.source == ""  # an address may hold a password: it is not kept


def test_duckdb(tmp_path: Path, mapping: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("duckdb_engine")
    with duckdb.connect(str(tmp_path / "h.duckdb")) as connection:
        for line in TABLES:
            connection.execute(line)
    assert named(load(f"duckdb:///{tmp_path / 'h.duckdb'}", mapping=mapping)) == EXPECTED


def test_postgresql(postgres: str, mapping: str) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        for line in TABLES:
            connection.execute(line)
    assert named(load(postgres, mapping=mapping)) == EXPECTED
    with pytest.raises(ReadError) as error:
        load(postgres.replace("/postgres", "/nowhere"), mapping=mapping)
    assert "secret" not in str(error.value)
    assert "nowhere" in str(error.value)


def test_what_is_missing_is_left_out_and_said(
    tmp_path: Path, mapping: str, caplog: pytest.LogCaptureFixture
) -> None:
    fitted = fit(Path(mapping), {"patient": {"id", "ward"}, "diagnosis": {"patient", "code"}})
    assert fitted.left_out == ("column patient.birthplace", "table surgery")
    assert fitted.maps == 2
    assert "birthplace" not in fitted.text


def test_bad_addresses_and_mappings_are_explained(tmp_path: Path, mapping: str) -> None:
    with pytest.raises(ReadError, match="needs a mapping"):
        load("sqlite:///h.db")
    with pytest.raises(ReadError, match="no such file"):
        load(f"sqlite:///{tmp_path / 'none.db'}", mapping=mapping)
    with pytest.raises(ReadError) as error:
        load("postgresql://curator:secret@127.0.0.1:1/h", mapping=mapping)
    assert "secret" not in str(error.value)
    with pytest.raises(UnknownNameError, match="mimic-iii"):
        load("sqlite:///h.db", mapping="mimic")
    (tmp_path / "bad.ttl").write_text("this is <no mapping")
    (tmp_path / "empty.ttl").write_text("<urn:a> <urn:b> <urn:c> .")
    (tmp_path / "h.db").write_bytes(b"no database" * 100)
    sqlite3.connect(tmp_path / "e.db").close()
    (tmp_path / "e.db").touch()
    for name, database in (
        ("bad.ttl", "e.db"),
        ("empty.ttl", "e.db"),
        ("mapping.ttl", "h.db"),
        ("mapping.ttl", "e.db"),
    ):
        with pytest.raises(InputError):
            load(f"sqlite:///{tmp_path / database}", mapping=str(tmp_path / name))
    assert hide_password("postgresql://me:pa:ss@host/db") == "postgresql://me:…@host/db"


def test_a_folder_of_tables(tmp_path: Path, mapping: str) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "PATIENT.csv").write_text("ID,WARD\n1,north\n2,south\n3,\n")
    with gzip.open(folder / "diagnosis.csv.gz", "wt") as file:
        file.write('Patient,Code\n1,I10\n2,"I10"\n2,"E 11"\n2,"E 11"\n3,none\n')
    assert named(load(f"tables:{folder}", mapping=mapping)) == EXPECTED
    with pytest.raises(ReadError, match="none that a shipped mapping knows"):
        load(f"tables:{folder}")
    with pytest.raises(ReadError, match="no CSV file"):
        load(f"tables:{tmp_path / 'postgres'}")


def test_rules_beside_a_mapping_are_applied_whoever_loads(tmp_path: Path, mapping: str) -> None:
    """The command line and Python give the same graph: marked, unless somebody says otherwise."""
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "PATIENT.csv").write_text("ID,WARD\n1,north\n2,south\n3,\n")
    (folder / "diagnosis.csv").write_text('Patient,Code\n1,I10\n2,"E 11"\n')
    assert load(f"tables:{folder}", mapping=mapping).marks is None
    rules = "unit: head\nper_unit: 3\nabsent: allowed\nrules:\n- relation: urn:h:hasDiagnosis\n- relation: urn:h:nothing\n"
    Path(mapping).with_suffix(".marks.yaml").write_text(rules)
    graph = load(f"tables:{folder}", mapping=mapping)
    assert graph.marks is not None
    assert (graph.marks.unit, graph.marks.per_unit) == ("head", 3)
    spoken = {graph.relations[r] for r in graph.train[graph.secret("train"), 1]}
    assert spoken == {"urn:h:hasDiagnosis"}
    assert load(f"tables:{folder}", mapping=mapping, marks=False).marks is None
    Path(mapping).with_suffix(".marks.yaml").write_text(rules.replace("hasDiagnosis", "hasSecret"))
    assert load(f"tables:{folder}", mapping=mapping).marks is None  # (about nothing that is there)


def test_a_run_that_took_a_mapped_source_as_confidential_throughout_finds_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So 0.1 did, without a word of the rules beside the mapping: such a run still opens and verifies."""
    folder = tmp_path / "tables"
    folder.mkdir()
    rows = "".join(f"{i},{'white' if i % 2 else 'asian'},{'FM'[i % 2]}\n" for i in range(40))
    (folder / "patients.csv").write_text(f"Id,RACE,GENDER\n{rows}")
    (folder / "conditions.csv").write_text(
        "Patient,Description\n" + "".join(f"{i},cold\n" for i in range(40))
    )
    source = f"tables:{folder}"
    assert load(source).marks is not None
    settings = {"model": "distmult", "dimension": 4, "epochs": 1, "threads": 1, "epsilon": 4.0}
    with monkeypatch.context() as patch:
        reading = importlib.import_module("veilgraph.load.source")
        patch.setattr(reading, "_marked", lambda graph, options: graph)
        run = train(source, out=tmp_path / "run", **settings)
    assert run.facts["may_be_confidential"] == "any"
    opened = open_run(tmp_path / "run")
    assert opened.graph().secret("train").all()
    assert verify(opened)["valid"], verify(opened)["reasons"]


@pytest.mark.parametrize("name", shipped())
def test_shipped_mappings_are_whole(name: str) -> None:
    """Every relation of a shipped mapping's marks is a relation of the mapping."""
    text = find_mapping(name).read_text(encoding="utf-8")
    assert text.count("rr:logicalTable") >= 10


@pytest.mark.parametrize(
    ("folder", "mapping", "least"),
    [
        ("mimic-iii-demo", "mimic-iii", 40_000),
        ("eicu-demo/subset174", "eicu", 15_000),
        ("synthea-sample", "synthea", 40_000),
    ],
)
def test_clinical_demos(folder: str, mapping: str, least: int) -> None:
    if not (data_folder() / folder).is_dir():
        pytest.skip(f"{folder} is not in {data_folder()}")
    graph = load(f"tables:{data_folder() / folder}")
    assert len(graph) > least
    assert all(name.startswith(f"urn:{mapping.split('-')[0]}:") for name in graph.relations)


@pytest.mark.parametrize(
    "files",
    [{"patient.csv": "id,ID\n1,2\n"}, {"patient.csv": "id\n1\n", "PATIENT.csv.gz": "id\n1\n"}],
    ids=["columns", "tables"],
)
def test_tables_that_clash_are_bad_input(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        data = text.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(ReadError, match="cannot become a table"):
        load(f"tables:{tmp_path}")


def test_a_quote_in_a_table_name_is_a_name(tmp_path: Path, mapping: str) -> None:
    (tmp_path / 'odd"; DROP TABLE patient; --.csv').write_text("id\n1\n", encoding="utf-8")
    (tmp_path / "patient.csv").write_text("id,ward\n1,north\n", encoding="utf-8")
    (tmp_path / "diagnosis.csv").write_text("patient,code\n", encoding="utf-8")
    assert len(load(f"tables:{tmp_path}", mapping=mapping).triples) == 1
