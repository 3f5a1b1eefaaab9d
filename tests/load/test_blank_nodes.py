"""Blank nodes are called what their source calls them; the parser, which renames them all, is the judge of which are one."""

from __future__ import annotations

import io
from itertools import chain
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest

from tests.conformance.test_readers import endpoint
from veilgraph.load import load
from veilgraph.load.readers import blank_nodes
from veilgraph.load.readers.blank_nodes import NUMBERED, Labelled, Naming

PREFIXES = "@prefix e: <http://e/> . @prefix : <http://c/> . @prefix a_: <http://u/> .\n"
TURTLE = (
    "_:a e:p 5 . _:a e:p 5.\n_:b e:p 1.5.\n_:c e:p 1e5 .",
    "_:a e:p 5._:b e:p e:o.",
    "_:a e:p -5._:b e:p -1e5._:c e:p true .",
    '_:a e:p """ _:no "" \\""" " _:x ""","_:no", \'_:no\', \'\'\'a\'\' _:no\'\'\', "", """""" , \'\' .\n_:b e:p _:c.',
    "_:a e:p <http://e/_:x#_:y> ; # _:comment ' \" \n e:q a_:b, a_:_:z, e:x_:y, e:a\\#_:b, e:%5F_:x .",
    "[] e:p [ e:q _:a ], (_:b _:c e:d) .",
    "_:a e:p _:b.c , _:b-c, _:0, _:_ .",
    "_:é e:p _:ü .",
    "_:a e:p _:c.:d e:p e:q.",
    "<< _:a e:p _:b >> e:q _:a, [] . <<_:a e:p e:b>> e:q <<_:c e:p _:a>>.",
    "_:a e:p e:b.#_:x\n_:c e:p e:d.",
    "_:a<http://p>_:b;e:q _:c,_:d.",
    "_:unnamed-0 e:p _:label-unnamed-0, _:unnamed, [] .",
)
LINES = """_:a <urn:p> _:b .
_:b <urn:p> "_:no \\" _:x"@en .
# _:c
<urn:s> <urn:p> <urn:a_:b> .
_:a.b<urn:p>_:c.
<urn:s> <urn:p> _:last ."""


def parsed(text: bytes, media_type: str, naming: Naming | None = None) -> list[list[Any]]:
    """Every term that is no statement, in order."""

    def flat(one: Any) -> list[Any]:
        if not isinstance(one, pyoxigraph.Triple | pyoxigraph.Quad):
            return [one]
        return [term for part in (one.subject, one.predicate, one.object) for term in flat(part)]

    stream = io.BytesIO(text) if naming is None else io.BufferedReader(naming.stream, 100)  # type: ignore[type-var]
    return [flat(one) for one in pyoxigraph.parse(stream, media_type, base_iri="urn:x:")]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_labels_are_kept_and_who_is_who_stays(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands around them, and wherever a block of the stream ends: one name for each node of the parser's, and the label."""
    monkeypatch.setattr(blank_nodes, "BLOCK", block)
    cases = [(PREFIXES + text, kind) for text in TURTLE for kind in ("text/turtle", "application/trig")]
    cases += [(LINES, kind) for kind in ("application/n-triples", "application/n-quads")]
    for text, kind in cases:
        naming = Naming(Labelled(io.BytesIO(text.encode()), kind), "")
        hidden, kept = parsed(text.encode(), kind), parsed(text.encode(), kind, naming)
        assert [len(line) for line in hidden] == [len(line) for line in kept]
        names: dict[str, set[str]] = {}
        for one, other in zip(chain(*hidden), chain(*kept)):
            if isinstance(one, pyoxigraph.BlankNode):
                names.setdefault(one.value, set()).add(naming.name(other))
            else:
                assert one == other
        called = [name for found in names.values() for name in found]
        assert len(set(called)) == len(called) == len(names)
        if "[" not in text and "(" not in text:
            assert not naming.numbered
            assert all(name in text for name in called)


def test_a_source_says_whether_blank_nodes_are_numbered(tmp_path: Path) -> None:
    for text, decided in (
        ("_:stay07 <urn:p> <urn:a> . _:stay07 <urn:q> _:x .", ()),
        ("_:stay07 <urn:p> [ <urn:q> _:x ] .", (NUMBERED,)),
        ("<urn:a> <urn:p> <urn:b> .", ()),
    ):
        (tmp_path / "g.ttl").write_text(text)
        graph = load(tmp_path / "g.ttl")
        assert graph.decided_from == decided
        assert ("_:stay07" in graph.entities) == ("_:stay07" in text)
    xml = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
    <rdf:Description rdf:nodeID="stay7"><e:p rdf:resource="http://e/x"/></rdf:Description></rdf:RDF>"""
    (tmp_path / "g.rdf").write_text(xml)
    assert load(tmp_path / "g.rdf").decided_from == (NUMBERED,)
    with endpoint("_:a <urn:p> <urn:b> .\n") as address:  # (its labels are of one answer)
        assert load(address).decided_from == (NUMBERED,)


def test_labels_of_several_files_are_kept_apart(tmp_path: Path) -> None:
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.nt").write_text("_:a <urn:p> <urn:b> .\n")
    assert list(load(tmp_path).entities) == ["_:test-a", "_:train-a", "_:valid-a", "urn:b"]
    (tmp_path / "valid.nt").unlink()
    (tmp_path / "valid.ttl").write_text("[] <urn:p> <urn:b> .\n")
    assert load(tmp_path).decided_from == (NUMBERED,)
