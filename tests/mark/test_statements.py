"""Statements named one by one: whatever was named is marked, or refused with a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from veilgraph.errors import ConfigError, InputError
from veilgraph.load import Graph, load, save
from veilgraph.mark import mark

STAYS = [
    line
    for i in range(30)
    for line in (
        f"_:stay{i:02d} <urn:has> <urn:hiv> .",
        f"_:stay{i:02d} <urn:of> <urn:patient{i}> .",
    )
]


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def heads(graph: Graph) -> set[str]:
    assert graph.marks is not None
    return {graph.entities[i] for i in graph.train[graph.secret("train"), 0]}


def test_blank_nodes_of_a_file_are_those_of_the_graph(tmp_path: Path) -> None:
    graph = load(written(tmp_path / "g.nt", STAYS))
    some = [line for line in STAYS if line.startswith(("_:stay07", "_:stay21")) and "has" in line]
    marked = graph.with_marks(mark(graph, statements=written(tmp_path / "s.nt", some)))
    assert heads(marked) == {"_:stay07", "_:stay21"}
    save(graph, tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert heads(again.with_marks(mark(again, statements=tmp_path / "s.nt"))) == {"_:stay07", "_:stay21"}


def test_blank_nodes_nobody_can_recognise_are_refused(tmp_path: Path) -> None:
    graph = load(written(tmp_path / "g.nt", STAYS))
    with pytest.raises(InputError, match="without a label"):
        mark(graph, statements=written(tmp_path / "s.ttl", ["[] <urn:has> <urn:hiv> ."]))
    older = replace(graph, extra={})  # as saved before labels were kept
    with pytest.raises(InputError, match="numbered them"):
        mark(older, statements=written(tmp_path / "s.nt", STAYS[:1]))
    (tmp_path / "split").mkdir()
    of_files = load(written(tmp_path / "split" / "train.nt", STAYS).parent)
    with pytest.raises(InputError, match="not in the graph"):
        mark(of_files, statements=tmp_path / "s.nt")


def test_literals_of_a_file_are_marked_or_missed(tmp_path: Path) -> None:
    lines = [f'<urn:p{i}> <urn:has> "HIV positive" .\n<urn:p{i}> <urn:in> <urn:ward> .' for i in range(9)]
    lines += ["<urn:q> <urn:has> <urn:flu> ."]
    secret = written(tmp_path / "s.nt", [line.splitlines()[0] for line in lines])
    graph = load(written(tmp_path / "g.nt", lines), literals="entity")
    assert int(mark(graph, statements=secret).masks["train"].sum()) == 10
    with pytest.raises(InputError, match="9 statements that are not in the graph"):
        mark(load(tmp_path / "g.nt"), statements=secret)
    told = '<urn:q> <http://schema.org/description> "has the flu" .'
    with pytest.raises(InputError, match="no statements of a graph"):
        mark(graph, statements=written(tmp_path / "t.nt", [*lines, told]))


def test_ids_are_of_the_graph(hospital: Graph) -> None:
    own = hospital.train[hospital.train[:, 1] == hospital.relations.id("hasDiagnosis")][:20]
    for rows in (own, own.astype(np.int64), np.concatenate([own, own])):
        marks = mark(hospital, statements=rows)
        assert set(map(tuple, hospital.train[marks.masks["train"]].tolist())) == set(map(tuple, own.tolist()))
    far = own[:1] + np.array([[0, -1, len(hospital.entities)]])  # the key of a statement, and no statement
    for rows in (own[:, [0, 2, 1]], far, -own):
        with pytest.raises(InputError, match="go from 0 to"):
            mark(hospital, statements=rows)
    absent = own.copy()
    absent[:, 2] = own[:, 0]
    with pytest.raises(InputError, match="not in the graph"):
        mark(hospital, statements=absent)
    for rows in (own.ravel(), own.astype(float), own > 0, own[:, :2], [tuple(own[0])]):
        with pytest.raises(ConfigError, match=r"\[n, 3\]"):
            mark(hospital, statements=rows)  # type: ignore[arg-type]
    assert (
        not mark(hospital, statements=own[:0]).masks["train"].any()
    )  # (nothing is confidential: somebody said so)
