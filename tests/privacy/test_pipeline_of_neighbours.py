"""What is decided before the first noise: the whole way on a graph, and on the same graph without one confidential unit.

Load, marks, --fix, split, settings, first tables, candidates: whatever a certificate calls public must be the same, byte for byte, or the
decision must be named in ``decided_from``. Names of entities and relations are public by contract, so the unit that is missing is one
whose names others have too.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.conformance.test_readers import endpoint
from veilgraph import models
from veilgraph.config import TrainConfig, settle
from veilgraph.load import Graph, fix, inductive, load, save, split
from veilgraph.load.source import readers
from veilgraph.load.split import MODES
from veilgraph.mark import mark_by_rules, unrestricted
from veilgraph.mark.rules import KINDS
from veilgraph.recommend.catalogue import catalogue
from veilgraph.rng import Streams
from veilgraph.run.facts import decided_from, marks_of
from veilgraph.train.private.defaults import settled_defaults
from veilgraph.train.state import TrainingState
from veilgraph.train.tuned import tuned_on

splitting = sys.modules["veilgraph.load.split"]  # (the package has a function of that name)
PEOPLE, ILLNESSES, CITIES = 40, 8, 5
Statement = tuple[str, str, str]


def world() -> list[Statement]:
    """People with illnesses (confidential) and cities, and what cities and illnesses are; some statements twice."""
    rng = np.random.default_rng(3)
    found: list[Statement] = []
    for person in range(PEOPLE):
        found += [
            (f"person/{person}", "has", f"illness/{i}") for i in rng.permutation(ILLNESSES)[: 2 + person % 3]
        ]
        found.append((f"person/{person}", "livesIn", f"city/{rng.integers(CITIES)}"))
        found.append((f"person/{person}", "knows", f"person/{rng.integers(PEOPLE)}"))
        found.append((f"person/{person}", "type", "Person" if person % 2 else "Guest"))
    found += [(f"illness/{i}", "kindOf", f"illness/{(i + 1) % ILLNESSES}") for i in range(ILLNESSES)]
    found += [(f"city/{i}", "near", f"city/{(i + 1) % CITIES}") for i in range(CITIES)]
    found += found[5:9]
    return [found[i] for i in np.random.default_rng(4).permutation(len(found))]


def without(
    statements: list[Statement], unit: str, person: int = 7, secret: set[Statement] | None = None
) -> list[Statement]:
    """The same without one unit: what a person has (or, if given, what is secret of it), or one of those statements."""
    of = [s for s in statements if s[0] == f"person/{person}"]
    of = [s for s in of if (s[1] == "has" if secret is None else s in secret)]
    gone = set(of if unit == "head" else of[:1])
    return [s for s in statements if s not in gone]


# --- sources: the same statements in every form a reader reads ----------------------------------------------------
Source = Callable[[Path, list[Statement]], contextlib.AbstractContextManager[Graph]]


def _of(write: Callable[[Path, list[Statement]], str], **options: Any) -> Source:
    @contextlib.contextmanager
    def made(folder: Path, statements: list[Statement]) -> Iterator[Graph]:
        yield load(write(folder, statements), **options)

    return made


def _tsv(folder: Path, statements: list[Statement]) -> str:
    (folder / "g.tsv").write_text("".join("\t".join(s) + "\n" for s in statements))
    return str(folder / "g.tsv")


def _parquet(folder: Path, statements: list[Statement]) -> str:
    frame = pl.DataFrame(statements, schema=["head", "relation", "tail"], orient="row")
    frame.write_parquet(folder / "g.parquet")
    return str(folder / "g.parquet")


def _triples(statements: list[Statement]) -> str:
    return "".join("".join(f"<urn:{word}> " for word in s) + ".\n" for s in statements)


def _rdf(folder: Path, statements: list[Statement]) -> str:
    (folder / "g.nt").write_text(_triples(statements))
    return str(folder / "g.nt")


def _turtle(folder: Path, statements: list[Statement]) -> str:
    """Blank nodes with labels: everybody and everything is one, and confidential statements are the first to mention them."""
    first = sorted(_flat(statements), key=lambda s: s[1] != "has")
    (folder / "g.ttl").write_text("".join(f"_:{h} <urn:{r}> _:{t} .\n" for h, r, t in first))
    return str(folder / "g.ttl")


def _nameless(folder: Path, statements: list[Statement]) -> str:
    """Blank nodes without a label beside names: each person's statements are about a stay of theirs."""
    words = [(h, "of", "somebody") for h in dict.fromkeys(h for h, _, _ in statements if "person" in h)]
    rows = [f"<urn:{h}> <urn:{r}> [ <urn:at> <urn:{t}> ] .\n" for h, r, t in [*_flat(statements), *words]]
    (folder / "g.ttl").write_text("".join(rows))
    return str(folder / "g.ttl")


def _three_files(folder: Path, statements: list[Statement]) -> str:
    """A folder that is split already, by each statement's own words."""
    parts: dict[str, list[Statement]] = {"train": [], "valid": [], "test": []}
    for s in statements:
        parts[("train", "train", "train", "valid", "test")[sum(map(ord, "".join(s))) % 5]].append(s)
    (folder / "splits").mkdir()
    for name, own in parts.items():
        (folder / "splits" / f"{name}.tsv").write_text("".join("\t".join(s) + "\n" for s in own))
    return str(folder / "splits")


def _grail(folder: Path, statements: list[Statement]) -> str:
    for part in ("transductive", "inductive"):
        (folder / part).mkdir()
        moved = [tuple(f"{part}/{w}" if "/" in w else w for w in s) for s in statements]
        for name, own in (("train", moved[20:]), ("valid", moved[10:20]), ("test", moved[:10])):
            (folder / part / f"{name}.tsv").write_text("".join("\t".join(s) + "\n" for s in own))
    return str(folder)


@contextlib.contextmanager
def _sparql(folder: Path, statements: list[Statement]) -> Iterator[Graph]:
    with endpoint(_triples(statements)) as address:
        yield load(address)


MAPPING = """
@prefix rr: <http://www.w3.org/ns/r2rml#> .
<#s> rr:logicalTable [ rr:tableName "statement" ] ;
    rr:subjectMap [ rr:template "urn:{head}" ] ;
    rr:predicateObjectMap [ rr:predicateMap [ rr:template "urn:{relation}" ] ; rr:objectMap [ rr:template "urn:{tail}" ] ] .
"""


def _flat(statements: list[Statement]) -> list[Statement]:
    return [tuple(word.replace("/", "-") for word in s) for s in statements]  # type: ignore[misc]


@contextlib.contextmanager
def _database(folder: Path, statements: list[Statement]) -> Iterator[Graph]:
    (folder / "m.ttl").write_text(MAPPING)
    with contextlib.closing(sqlite3.connect(folder / "h.db")) as connection:
        connection.execute("CREATE TABLE statement (head TEXT, relation TEXT, tail TEXT)")
        connection.executemany("INSERT INTO statement VALUES (?, ?, ?)", _flat(statements))
        connection.commit()
    yield load(f"sqlite:///{folder / 'h.db'}", mapping=str(folder / "m.ttl"))


@contextlib.contextmanager
def _tables(folder: Path, statements: list[Statement]) -> Iterator[Graph]:
    (folder / "m.ttl").write_text(MAPPING)
    (folder / "t").mkdir()
    rows = "".join(",".join(s) + "\n" for s in _flat(statements))
    (folder / "t" / "statement.csv").write_text("head,relation,tail\n" + rows)
    yield load(f"tables:{folder / 't'}", mapping=str(folder / "m.ttl"))


def _interactions(folder: Path, statements: list[Statement]) -> str:
    rows = [(h, t, "soon" if h == "person/7" else str(len(h + t))) for h, r, t in statements if r == "has"]
    (folder / "r.csv").write_text("user,item,time\n" + "".join(",".join(row) + "\n" for row in rows))
    return f"interactions:{folder / 'r.csv'}"


def _movielens(folder: Path, statements: list[Statement]) -> str:
    from veilgraph.load.readers.movielens import GENRES

    taken = [(h, t) for h, r, t in statements if r == "has"]
    number = {name: i + 1 for i, name in enumerate(sorted({h for h, r, _ in world() if r == "has"}))}
    (folder / "u.data").write_text(
        "".join(f"{number[h]}\t{int(t[8:]) + 1}\t5\t{100 + len(h)}\n" for h, t in taken)
    )
    (folder / "u.user").write_text("".join(f"{i}|{20 + i}|M|other|8571\n" for i in number.values()))
    flags = "|".join("1" if i == 5 else "0" for i in range(len(GENRES)))
    (folder / "u.item").write_text(
        "".join(f"{i + 1}|Film {i}|01-Jan-1995||url|{flags}\n" for i in range(ILLNESSES))
    )
    return f"movielens:{folder}"


SOURCES: dict[str, tuple[Source, str]] = {  # and the confidential relation there
    "delimited": (_of(_tsv), "has"),
    "parquet": (_of(_parquet), "has"),
    "rdf": (_of(_rdf), "urn:has"),
    "rdf labels": (_of(_turtle), "urn:has"),
    "rdf nameless": (_of(_nameless), "urn:has"),
    "folder": (_of(_three_files), "has"),
    "grail": (_of(_grail), "has"),
    "sparql": (_sparql, "urn:has"),
    "database": (_database, "urn:has"),
    "tables": (_tables, "urn:has"),
    "interactions": (_of(_interactions), "watched"),
    "movielens": (_of(_movielens), "watched"),
}


NAMED = ("rdf nameless", "grail")  # readers that decide something by any statement, and say so


def test_every_reader_has_a_source() -> None:
    assert {reader.name for reader in readers()} - {"builtin"} == {
        source.split()[0] for source in SOURCES
    }  # (builtin reads no data)


# --- the way, and what of it is public ----------------------------------------------------------------------------
def public(graph: Graph) -> dict[str, Any]:
    """Everything a promise calls public, as bytes or words; nothing here may depend on what is confidential."""
    known = unrestricted(graph)
    found: dict[str, Any] = {
        "entities": list(graph.entities),
        "relations": list(graph.relations),
        "held out": np.flatnonzero(graph.held_out).tolist(),
        "marks": marks_of(graph),
        "decided": decided_from(graph),
        "tuned on": tuned_on(graph),
        **{f"unrestricted {name}": rows.tobytes() for name, rows in known.splits.items()},
        "candidates": catalogue(graph.entities, ",".join({e[:4] for e in graph.entities})).tobytes(),
    }
    for model in ("transm", "complex"):
        config, line = settled_defaults(graph, known, TrainConfig.of({"model": model, "epsilon": 1.0}), 100.0)
        scorer = models.create(model, config.dimension or 1)
        scorer.prepare(known.train, len(graph.relations))
        state = TrainingState.fresh(graph, scorer, settle(config), Streams(0))
        found[f"{model} settings"] = json.dumps(config.as_dict())
        found[f"{model} line"] = line
        found[f"{model} first rows"] = state.parameters.entities.numpy().tobytes()
        found[f"{model} weights"] = None if scorer.relation_scale is None else scorer.relation_scale.tolist()
    return found


RULES: dict[str, Callable[[Path, Graph, str], dict[str, Any]]] = {
    "relation": lambda folder, graph, relation: {"rules": [{"relation": relation}]},
    "type": lambda folder, graph, relation: {"rules": [{"type": "Guest"}]},
    "statements": lambda folder, graph, relation: {
        "rules": [{"statements": _listed(folder, graph, relation)}]
    },
    "query": lambda folder, graph, relation: {
        "rules": [{"query": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . FILTER(CONTAINS(STR(?p), 'has')) }"}]
    },
    "random_share": lambda folder, graph, relation: {"rules": [{"random_share": 0.5, "seed": 1}]},
    "everything": lambda folder, graph, relation: {"rules": [{"everything": True}]},
}


def _listed(folder: Path, graph: Graph, relation: str) -> str:
    """The curator's list of single statements: of a neighbour it is one shorter."""
    rows = graph.triples[graph.triples[:, 1] == graph.relations.id(relation)]
    text = "".join(
        f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n"
        for h, r, t in np.unique(rows, axis=0)
    )
    (folder / "confidential.tsv").write_text(text)
    return str(folder / "confidential.tsv")


def way(
    folder: Path,
    source: str,
    statements: list[Statement],
    rule: str,
    unit: str,
    mode: str | None,
    *,
    mend: bool,
) -> dict[str, Any]:
    """From the source to everything public, as the command line goes: marks, --fix, split, save, open."""
    folder.mkdir(parents=True)
    make, relation = SOURCES[source]
    with make(folder, statements) as graph:
        document = {**RULES[rule](folder, graph, relation), "unit": unit}
        graph = graph.with_marks(mark_by_rules(graph, document))
        if mend:
            graph = fix(graph)
        if mode is not None:
            graph = split(graph, valid=0.2, test=0.2, mode=mode, seed=5)
        save(graph, folder / "saved")
        return public(load(folder / "saved"))


def differing(
    tmp_path: Path,
    source: str,
    rule: str,
    unit: str,
    mode: str | None,
    *,
    mend: bool = True,
    people: Sequence[int] = (7,),
) -> list[str]:
    """What differs between a graph and one without a unit, for any of several, and is not named as decided from
    confidential statements."""
    given, found = world(), set()
    one = way(tmp_path / "with", source, given, rule, unit, mode, mend=mend)
    secret = None if rule == "relation" else secret_of(tmp_path, given, rule)
    for person in people:
        less = without(given, unit, person, secret)
        two = way(tmp_path / f"without {person}", source, less, rule, unit, mode, mend=mend)
        named = bool(one["decided"]) and one["decided"] == two["decided"]
        found |= set() if named else {key for key in one if one[key] != two[key]}
    return sorted(found)


def secret_of(folder: Path, statements: list[Statement], rule: str) -> set[Statement]:
    """What a rule marks, of a file of statements."""
    graph = load(_tsv(folder, statements))
    graph = graph.with_marks(mark_by_rules(graph, RULES[rule](folder, graph, "has")))
    rows = graph.train[graph.secret("train")]
    return {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in rows}


@pytest.mark.parametrize("unit", ["statement", "head"])
@pytest.mark.parametrize("source", SOURCES)
def test_every_reader(source: str, unit: str, tmp_path: Path) -> None:
    if (source, unit) == ("interactions", "head"):
        pytest.skip("nobody would be left of that name, and who is in the vocabulary is public")
    mode = None if source in ("folder", "grail") else "random"
    people = range(PEOPLE) if source == "folder" else (7,)
    assert differing(tmp_path, source, "relation", unit, mode, people=people) == []
    (tmp_path / "named").mkdir()
    with SOURCES[source][0](tmp_path / "named", world()) as graph:
        assert bool(graph.decided_from) == (source in NAMED)


@pytest.mark.parametrize("unit", ["statement", "head"])
@pytest.mark.parametrize("mode", MODES)
def test_every_split(mode: str, unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inductive, splitting):
        monkeypatch.setattr(module, "LEAST", 2)  # (the published rule is for larger graphs)
        monkeypatch.setattr(module, "NEIGHBOURS", 0)
    assert differing(tmp_path, "delimited", "relation", unit, mode, people=range(PEOPLE)) == []


@pytest.mark.parametrize("unit", ["statement", "head"])
@pytest.mark.parametrize("mode", ["random", "latest"])
@pytest.mark.parametrize("rule", KINDS)
def test_every_rule(rule: str, mode: str, unit: str, tmp_path: Path) -> None:
    if (rule, unit) == ("everything", "head"):
        pytest.skip("nobody would be left of that name, and who is in the vocabulary is public")
    assert differing(tmp_path, "delimited", rule, unit, mode, people=range(12)) == []


def test_the_comparison_sees_a_decision_by_confidential_statements(tmp_path: Path) -> None:
    """Split before anything was marked, by everybody's last statements: a unit that is missing moves unrestricted ones."""
    found = []
    for name, statements in (("with", world()), ("without", without(world(), "head"))):
        (tmp_path / name).mkdir()
        graph = split(load(_tsv(tmp_path / name, statements)), valid=0.2, test=0.2, mode="latest", seed=5)
        found.append(
            public(graph.with_marks(mark_by_rules(graph, RULES["random_share"](tmp_path, graph, "has"))))
        )
    assert "unrestricted test" in [key for key in found[0] if found[0][key] != found[1][key]]
    assert any("latest" in line for line in found[0]["decided"])
