"""Marks: every kind of rule, units, caps, and their way through load and save."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from veilgraph.errors import ConfigError, InputError, RunError, UnknownNameError, UsageError
from veilgraph.load import Graph, fix, load, save, split
from veilgraph.mark import mark, summarise, units, unrestricted
from veilgraph.mark.units import capped


def names(graph: Graph, statements: np.ndarray) -> set[tuple[str, str, str]]:
    return {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in statements.tolist()}


def secret(graph: Graph) -> set[tuple[str, str, str]]:
    return set().union(*(names(graph, graph.splits[s][graph.secret(s)]) for s in graph.splits))


def test_by_relation_and_glob(hospital: Graph) -> None:
    marked = hospital.with_marks(mark(hospital, relations=["hasDiagnosis", "takes*"]))
    expected = {
        t for t in names(hospital, hospital.triples) if t[1] == "hasDiagnosis" or t[1].startswith("takes")
    }
    assert secret(marked) == expected
    assert expected
    with pytest.raises(UnknownNameError, match="Nearest"):
        mark(hospital, relations=["hasDiagnosi"])


def test_by_type_statements_query_and_everything(hospital: Graph, tmp_path: Path) -> None:
    marked = hospital.with_marks(mark(hospital, types=["patient"]))
    assert secret(marked) == {
        t for t in names(hospital, hospital.triples) if "patient/" in t[0] or "patient/" in t[2]
    }
    some = sorted(names(hospital, hospital.triples))[:5]
    (tmp_path / "some.tsv").write_text("".join("\t".join(t) + "\n" for t in some), encoding="utf-8")
    assert secret(hospital.with_marks(mark(hospital, statements=tmp_path / "some.tsv"))) == set(some)
    (tmp_path / "more.tsv").write_text("nobody\thasDiagnosis\tnothing\n" * 2, encoding="utf-8")
    with pytest.raises(InputError, match="stay unprotected"):
        mark(hospital, statements=tmp_path / "more.tsv")
    by_query = hospital.with_marks(
        mark(hospital, query="CONSTRUCT { ?h <hasDiagnosis> ?t } WHERE { ?h <hasDiagnosis> ?t }")
    )
    by_relation = hospital.with_marks(mark(hospital, relations=["hasDiagnosis"]))
    assert secret(by_query) == secret(by_relation)
    with pytest.raises(InputError, match="cannot be run"):
        mark(hospital, query="SELEC nonsense")
    with pytest.raises(InputError, match="returned nothing"):
        mark(hospital, query="SELECT ?h ?r ?t WHERE { ?h ?r ?t . FILTER(false) }")
    assert len(secret(hospital.with_marks(mark(hospital, everything=True)))) == len(
        names(hospital, hospital.triples)
    )
    with pytest.raises(UsageError, match="nothing says"):
        mark(hospital)


def test_random_share_depends_on_the_statement_alone(hospital: Graph) -> None:
    marked = hospital.with_marks(mark(hospital, random_share=0.5, seed=1))
    share = np.mean(np.concatenate([marked.secret(s) for s in marked.splits]))
    assert 0.45 < share < 0.55
    fewer = hospital.with_splits({s: a[::2] for s, a in hospital.splits.items()})
    assert secret(fewer.with_marks(mark(fewer, random_share=0.5, seed=1))) == secret(marked) & names(
        fewer, fewer.triples
    )
    other = hospital.with_marks(mark(hospital, random_share=0.5, seed=2))
    assert secret(other) != secret(marked)


def test_marks_survive_load_save_load_and_splitting(hospital: Graph, tmp_path: Path) -> None:
    marked = hospital.with_marks(mark(hospital, relations=["has*"], unit="head", per_unit=4))
    save(marked, tmp_path / "one")
    first = load(tmp_path / "one")
    save(first, tmp_path / "two")
    second = load(tmp_path / "two")
    for found in (first, second):
        assert secret(found) == secret(marked)
        assert found.marks is not None
        assert found.marks.document == marked.marks.document
        assert found.marks.fingerprint == marked.marks.fingerprint
    document = yaml.safe_load((tmp_path / "two" / "marks.yaml").read_text(encoding="utf-8"))
    assert document["rules"] == [{"relation": "has*"}]
    assert document["unit"] == "head"
    assert secret(split(marked, seed=9)) == secret(marked)
    assert secret(fix(marked)) <= secret(marked)
    changed = (tmp_path / "two" / "marks.yaml").read_text(encoding="utf-8").replace("train: ", "train: 1")
    (tmp_path / "two" / "marks.yaml").write_text(changed, encoding="utf-8")
    with pytest.raises(RunError, match="not what was written"):
        load(tmp_path / "two")


def test_units_partition_confidential_statements(hospital: Graph) -> None:
    by_head = hospital.with_marks(mark(hospital, relations=["has*"], unit="head"))
    statements = by_head.train[by_head.secret("train")]
    assert (units(by_head) == statements[:, 0]).all()
    by_group = hospital.with_marks(mark(hospital, relations=["has*"], unit="group:admittedTo"))
    found = units(by_group)
    place = {
        (h): t
        for h, r, t in sorted(hospital.triples.tolist(), reverse=True)
        if hospital.relations[r] == "admittedTo"
    }
    for head, unit in zip(statements[:, 0].tolist(), found.tolist()):
        assert unit == place.get(head, head)
    for unit in ("person", "group:nowhere"):
        with pytest.raises((ConfigError, UnknownNameError)):
            mark(hospital, everything=True, unit=unit)
    with pytest.raises(ConfigError, match="per_unit"):
        mark(hospital, everything=True, per_unit=3)


def test_copies_of_a_statement_are_one_unit(hospital: Graph) -> None:
    twice = hospital.with_splits({"train": np.concatenate([hospital.train[:20]] * 2)})
    marked = twice.with_marks(mark(twice, everything=True))
    assert len(np.unique(units(marked))) == 20
    assert capped(units(marked), 1, np.random.default_rng(0)).sum() == 20


def test_cap_keeps_at_most_m_and_is_fair() -> None:
    unit_of = np.repeat(np.arange(50), np.arange(50) % 7 + 1)
    counts = np.zeros(len(unit_of))
    for seed in range(200):
        kept = capped(unit_of, 3, np.random.default_rng(seed))
        assert (np.bincount(unit_of[kept], minlength=50) == np.minimum(3, np.arange(50) % 7 + 1)).all()
        counts += kept
    of_seven = counts[unit_of == 6] / 200
    assert of_seven.min() > 0.25  # each of seven is kept 3/7 of the time


def test_summary_says_what_an_outsider_sees(hospital: Graph) -> None:
    marked = hospital.with_marks(mark(hospital, relations=["hasDiagnosis"]))
    found = summarise(marked)
    assert found["confidential"] == len(secret(marked))
    assert found["outsider_sees"]["statements"] == found["unrestricted"] == len(unrestricted(marked))
    assert names(hospital, unrestricted(marked).triples).isdisjoint(secret(marked))


def test_every_relation_that_tells_types_is_asked(tmp_path: Path) -> None:
    address = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    rows = [
        f"p{i}\t{address if i < 10 else 'type'}\tPatient\np{i}\thas\td{i % 3}\nq{i}\tnear\td1\n"
        for i in range(30)
    ]
    (tmp_path / "g.tsv").write_text("".join(rows), encoding="utf-8")
    graph = load(tmp_path / "g.tsv")
    marks = mark(graph, types=["Patient"])
    marked = secret(graph.with_marks(marks))
    assert sum(relation == "has" for _, relation, _ in marked) == 30
    assert not any(relation == "near" for _, relation, _ in marked)
    assert any(address in line and "type" in line for line in marks.decided_from)
