"""Bombs, mappings that write, names that terminals obey, and what nobody foresaw."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from veilgraph.cli import main
from veilgraph.errors import ConfigError, InputError
from veilgraph.limits import limit, read_yaml_text
from veilgraph.load import Graph, load, save
from veilgraph.load.queries import why_not

PREFIX = "@prefix rr: <http://www.w3.org/ns/r2rml#> .\n"


def laughs(depth: int) -> str:
    entities = '<!ENTITY l0 "ha">' + "".join(
        f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, depth)
    )
    return (
        f'<?xml version="1.0"?><!DOCTYPE r [{entities}]><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:u:">'
        f'<r:Description r:about="urn:a"><u:b>&l{depth - 1};</u:b></r:Description></r:RDF>'
    )


def aliases(depth: int) -> str:
    return "\n".join(
        ["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, depth))]
    )


def dictionary() -> bytes:
    """A long word that is there once, and twenty thousand rows that say it."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 900_000]))
    table = pa.table(dict.fromkeys(("head", "relation", "tail"), column))
    pq.write_table(table, out, compression="zstd", use_dictionary=True)
    return out.getvalue()


def fixed() -> bytes:
    """The same in words of one length."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    word = pa.array([b"x" * 65_000] * 100, pa.binary(65_000))
    columns = {name: pa.chunked_array([word] * 300) for name in ("head", "relation", "tail")}
    pq.write_table(pa.table(columns), out, compression="zstd", use_dictionary=True)
    return out.getvalue()


BOMBS: dict[str, Callable[[], bytes]] = {  # made when they are thrown
    "entities.rdf": lambda: laughs(12).encode(),
    "quadratic.rdf": lambda: laughs(1).replace('"ha"', '"' + "h" * 100_000 + '"').encode(),
    "parameter.rdf": lambda: b'<!DOCTYPE r [<!ENTITY % a "x">]><r/>',
    "outside.rdf": lambda: b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r/>',
    "zeros.tsv.gz": lambda: gzip.compress(b"a\tb\tc\n" * 8_000_000, 9),
    "line.tsv.gz": lambda: gzip.compress(b"a" * 60_000_000, 9),
    "zeros.nt.gz": lambda: gzip.compress(b"<urn:a> <urn:b> <urn:c> .\n" * 2_000_000, 9),
    "deep.ttl": lambda: b"<urn:a> <urn:b> " + b"[ <urn:c> " * 200_000,
    "lists.ttl": lambda: b"<urn:a> <urn:b> " + b"(" * 200_000,
    "words.parquet": dictionary,
    "fixed.parquet": fixed,
    "nospace.rdf": lambda: laughs(9).replace("<!ENTITY ", "<!ENTITY").encode(),
    "quote.rdf": lambda: laughs(9).replace("<!ENTITY l", "<!ENTITY a'l").replace("&l", "&a'l").encode(),
    "late.rdf": lambda: (
        b"<?xml version='1.0'?><!--" + b" " * (1 << 20) + b"-->" + laughs(9).partition("?>")[2].encode()
    ),
    "quoted.nt": lambda: b"<<" * 100_000,
}


MEASURED = """
import resource, sys
from veilgraph.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_sentence(name: str, tmp_path: Path) -> None:
    """In ten seconds and two gigabytes at most."""
    (tmp_path / name).write_bytes(BOMBS[name]())
    began = time.monotonic()
    words = [sys.executable, "-c", MEASURED, "load", str(tmp_path / name)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3, done.stderr[-300:]
    assert "veil load: " in done.stderr, done.stderr[-300:]
    assert "foresaw" not in done.stderr
    assert int(done.stdout.split()[-1]) < 2 << 20
    assert time.monotonic() - began < 25


@pytest.mark.parametrize("text", [aliases(9), "a: &a [*a]", "[" * 5000, "a: " + "{b: " * 5000, "- " * 5000])
def test_yaml_stands_for_no_more_than_it_is(text: str) -> None:
    began = time.monotonic()
    with pytest.raises((InputError, ValueError, Exception), match=r"too many|itself|nested|found|expected"):
        read_yaml_text(text)
    assert time.monotonic() - began < 5


def test_ordinary_aliases_and_ontologies_are_read(tmp_path: Path) -> None:
    assert read_yaml_text("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}
    text = (
        '<?xml version="1.0"?><!DOCTYPE r:RDF [<!ENTITY u "urn:u:"><!ENTITY owl "http://www.w3.org/2002/07/owl#">]>'
        '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:u:">'
        '<r:Description r:about="&u;a"><u:b r:resource="&owl;Thing"/></r:Description></r:RDF>'
    )
    (tmp_path / "a.owl").write_text(text)
    assert list(load(tmp_path / "a.owl").entities) == ["http://www.w3.org/2002/07/owl#Thing", "urn:u:a"]


def test_limits_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"a\tb\tc\n" * 4_000_000, 9))
    with pytest.raises(InputError, match="VEILGRAPH_LIMITS=ratio=NUMBER"):
        load(tmp_path / "a.tsv.gz")
    monkeypatch.setenv("VEILGRAPH_LIMITS", "ratio=2000,decompressed=1G")
    assert len(load(tmp_path / "a.tsv.gz")) > 0
    assert limit("decompressed") == 1 << 30
    for wrong in ("ratio", "ratio=-1", "absent=3", "ratio=3X"):
        monkeypatch.setenv("VEILGRAPH_LIMITS", wrong)
        with pytest.raises(ConfigError, match="expected NAME=NUMBER"):
            limit("ratio")


# --- mappings ----------------------------------------------------------------------------------------------------------
WRITES = [
    "DROP TABLE patient", "SELECT 1; DROP TABLE patient", "DELETE FROM patient", "SELECT id INTO copy FROM patient",
    "WITH x AS (DELETE FROM patient RETURNING id) SELECT * FROM x", "COPY patient TO '/tmp/x.csv'", "ATTACH '/tmp/x.db' AS x",
    "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "PRAGMA writable_schema = 1", "UPDATE patient SET id = 1",
    "SELECT set_config('transaction_read_only', 'off', false)", "SELECT pg_read_file('/etc/passwd')", "SELECT lo_import('/etc/passwd')",
    "SELECT 'a' -- ;\n; DROP TABLE patient", 'SELECT * FROM "read_csv"(\'/etc/passwd\')', "select load_extension('x')",
    "EXPLAIN SELECT 1",
    "SELECT * FROM READ_TEXT ('/etc/passwd')", "INSERT INTO patient VALUES (3)", "",
    "select id, '\\' as name from patient; commit; drop table patient; select 2 as id, 'zz' as name -- '",
    "SELECT (array[pg_read_file('/etc/hostname')])[1] AS ward, id FROM patient",
    "SELECT U&\"pg\\005fread_file\"('/etc/hostname') AS ward",
    "SELECT id AS \"a`, pg_read_file('x') AS ward, id, 'x' AS `b\" FROM patient", "SELECT '\\' || pg_read_file('x') || '' -- '",
    "SELECT pg_create_physical_replication_slot('evil')", "SELECT pg_switch_wal()", "SELECT $x$a$x$", "SELECT E'\\'; DROP TABLE a; --'",
    "SELECT 1 /* a /* b */ ; DROP TABLE patient -- */", "SELECT printf('%.*c', 300000000, 'x')", "SELECT repeat('x', 200000000)",
    "WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x) SELECT * FROM x", "SELECT * FROM pragma_table_info('patient')",
    "SELECT dblink_connect('x')", "SELECT query_to_xml('delete from patient', true, true, '')",
    "SELECT id, --\r pg_read_file('/etc/hostname') AS v FROM t",
    "SELECT id, U&\"pg_read_file\" UESCAPE '!' ('/etc/hostname') AS v FROM t",
    "SELECT current_setting\u200b('access_mode')", "SELECT id FROM t --\r; CREATE TEMP TABLE zz(a int); SELECT '9' AS id",
    "SELECT 1FROM '/etc/passwd'",
    "SELECT * FROM t, '/etc/passwd'", "SELECT 1INTO x", "SELECT 1pg_sleep(3)", "SELECT \"pg_sleep\" (3)",
    "SELECT * FROM (t), ('/etc/passwd')",
    "WITH x AS (SELECT 1 AS a UNION ALL SELECT a+1 FROM x) SELECT a AS id, a AS v FROM x",
    "SELECT * FROM a JOIN b ON a.x = 'y', '/etc/passwd'",
    "WITH x(a) AS (SELECT 1 UNION ALL SELECT a+1 FROM \"x\") SELECT a FROM x", "SELECT /* */ 1",
]  # fmt: skip


@pytest.mark.parametrize("query", WRITES)
def test_a_query_that_does_more_than_read_is_refused(query: str) -> None:
    assert why_not(query) is not None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, ward FROM patient WHERE ward <> 'a;b' AND ward IN ('north', 'süd') AND x > 1.5e3",
        "WITH a AS (SELECT id FROM patient), b AS (SELECT id FROM a) SELECT b.id, 'x' AS y, a.* FROM a JOIN b ON a.id = b.id AND a.w = 'z'",
        "WITH w AS (SELECT DISTINCT ward FROM patient) SELECT * FROM w;",
        "SELECT replace(ward, 'n', 'N') AS ward, \"update\" FROM patient",
        "SELECT CASE WHEN id > 1 THEN 'deleted' ELSE ward END AS x FROM patient",
    ],
)
def test_a_query_that_reads_is_run(query: str) -> None:
    assert why_not(query) is None


@pytest.mark.parametrize("words", [*WRITES, "COLUMN", "SOURCE"])
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_no_mapping_writes(kind: str, words: str, tmp_path: Path) -> None:
    pytest.importorskip("morph_kgc")
    path = tmp_path / f"h.{kind}"
    if kind == "sqlite":
        connection = sqlite3.connect(path)
    else:
        connection = pytest.importorskip("duckdb").connect(str(path))
        pytest.importorskip("duckdb_engine")
    connection.execute("CREATE TABLE patient (id INTEGER, ward VARCHAR)")
    connection.execute("INSERT INTO patient VALUES (1, 'north')")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    query = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    logical, column = f'[ rr:sqlQuery "{query}" ]', "id"
    if words == "COLUMN":
        logical, column = '[ rr:tableName "patient" ]', 'id\\"; DROP TABLE patient; --'
    extra = ' <http://semweb.mmlab.be/ns/rml#source> "/etc/passwd" ;' if words == "SOURCE" else ""
    mapping = tmp_path / "m.ttl"
    mapping.write_text(
        f'{PREFIX}<#p> rr:logicalTable {logical} ;{extra} rr:subjectMap [ rr:template "urn:p/{{{column}}}" ] ;\n'
        f'rr:predicateObjectMap [ rr:predicate <urn:x> ; rr:objectMap [ rr:column "{column}" ; rr:termType rr:IRI ] ] .\n'
    )
    with pytest.raises(InputError):
        load(f"{kind}:///{path}", mapping=str(mapping))
    assert path.read_bytes() == before
    assert not (tmp_path / "x.csv").exists()


def test_connections_of_a_mapping_cannot_write(tmp_path: Path) -> None:
    """Also where a query got through."""
    import sqlalchemy

    from veilgraph.load.readers.database import address

    connection = sqlite3.connect(tmp_path / "a ?#%.db")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    engine = sqlalchemy.create_engine(address(f"sqlite:///{tmp_path / 'b.db'}"))
    with pytest.raises(sqlalchemy.exc.OperationalError):
        engine.connect()
    (tmp_path / "b.db").write_bytes((tmp_path / "a ?#%.db").read_bytes())
    with engine.connect() as opened:
        assert opened.execute(sqlalchemy.text("SELECT count(*) FROM t")).scalar() == 0
        with pytest.raises(sqlalchemy.exc.OperationalError, match="readonly"):
            opened.execute(sqlalchemy.text("INSERT INTO t VALUES (1)"))


def test_postgres_is_read_in_transactions_that_cannot_write(postgres: str, tmp_path: Path) -> None:
    import psycopg

    from veilgraph.load.readers.database import CAREFUL, address

    url = address(postgres).replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute("CREATE TABLE patient (id INTEGER)")
    with psycopg.connect(url) as reader, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        reader.execute("INSERT INTO patient VALUES (1)")
    with (
        psycopg.connect(url, **CAREFUL) as reader,
        pytest.raises(psycopg.errors.SyntaxError, match="multiple commands"),
    ):
        reader.execute("COMMIT; BEGIN READ WRITE; INSERT INTO patient VALUES (1); COMMIT")


# --- terminals ----------------------------------------------------------------------------------------------------------
EVIL = "urn:\x1b]0;owned\x07\x1b[2J\u202egpj.exe\x9b31m"


def test_names_are_shown_and_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text(
        f"{EVIL}\turn:r\turn:b\nurn:c\turn:r\turn:b\nurn:b\turn:r\t{EVIL}\n", encoding="utf-8"
    )
    save(load(tmp_path / "a.tsv"), tmp_path / "g")
    settings = ["--model", "distmult", "--dimension", "4", "--epochs", "1", "--threads", "1"]
    words = ["train", str(tmp_path / "g"), "--out", str(tmp_path / "r"), *settings]
    assert main(words) == 0
    run = ["predict", str(tmp_path / "r"), "urn:c", "urn:r", "--known"]
    for more in ([], ["--json"]):
        capsys.readouterr()
        assert main([*run, *more]) == 0
        said = capsys.readouterr()
        for character in "\x1b\x07\u202e\x9b":
            assert character not in said.out + said.err
        assert "owned" in said.out
    assert any(row["entity"] == EVIL for row in json.loads(said.out))
    assert main(["predict", str(tmp_path / "r"), f"{EVIL}x", "urn:r"]) == 3
    assert "\x1b" not in capsys.readouterr().err


def test_what_nobody_foresaw_is_two_lines_without_data(
    hospital: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    def broken(*given: object, **options: object) -> None:
        raise ZeroDivisionError("Anna Muster has HIV")

    monkeypatch.setattr(importlib.import_module("veilgraph.load.source"), "assemble", broken)
    assert main(["load", "builtin:hospital"]) == 3
    said = capsys.readouterr().err
    assert "nobody foresaw" in said
    assert "ZeroDivisionError" in said
    assert "Anna" not in said
    assert "Traceback" not in said


def test_ranges_are_3_and_contradictions_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One rule: 2 for a command that cannot be read or contradicts itself, 3 for something that cannot be used."""
    save(load("builtin:hospital", patients=20), tmp_path / "g")
    train = ["train", str(tmp_path / "g"), "--out", str(tmp_path / "r")]
    for words in (
        [*train, "--dimension", "0"],
        [*train, "--epsilon", "-1"],
        [*train, "--epochs", "-3"],
        ["audit", str(tmp_path / "g"), "--canaries", "3"],
        ["load", str(tmp_path / "absent.tsv")],
        ["federate", "split", str(tmp_path / "g"), "--clients", "0", "--out", str(tmp_path / "c")],
        ["load", "x.csv", "--separator", "ab"],
    ):
        assert main(words) == 3, words
    for words in (
        [*train, "--drop-confidential", "--epsilon", "1"],
        ["certificate", "a", "b"],
        ["load", "a", "b", "c"],
    ):
        assert main(words) in (2, 3), words
    with pytest.raises(SystemExit) as left:
        main([*train, "--absent"])
    assert left.value.code == 2
