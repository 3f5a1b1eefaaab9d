"""Files of rules: flags beside them, relations that are absent, what shipped ones leave, what hangs beside."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from veilgraph.cli import main
from veilgraph.errors import ConfigError
from veilgraph.load import Graph, Vocabulary, load, save
from veilgraph.load.mapping import SHIPPED, shipped
from veilgraph.mark import beside, mark, mark_by_rules


def test_flags_win_over_a_rules_file(hospital: Graph, tmp_path: Path) -> None:
    """``mark --rules FILE --unit head --per-unit 3`` protected statements, without a word."""
    save(hospital, tmp_path / "graph")
    rules = tmp_path / "rules.yaml"
    rules.write_text("unit: statement\nper_unit: 1\nrules:\n- relation: takes\n", encoding="utf-8")
    words = ["mark", str(tmp_path / "graph"), "--rules", str(rules), "--json"]
    for more, expected in (
        ([], ("statement", 1)),
        (["--unit", "head", "--per-unit", "3"], ("head", 3)),
        (["--unit", "head"], ("head", 10)),
    ):
        assert main([*words, *more]) == 0
        marks = load(tmp_path / "graph").marks
        assert marks is not None
        assert (marks.unit, marks.per_unit) == expected
    rules.write_text("unit: head\nper_unit: 4\nrules:\n- relation: takes\n", encoding="utf-8")
    assert main([*words, "--per-unit", "2"]) == 0
    marks = load(tmp_path / "graph").marks
    assert marks is not None
    assert (marks.unit, marks.per_unit) == ("head", 2)
    assert main([*words, "--unit", "statement", "--per-unit", "2"]) == 3  # a statement is one


def test_rules_about_absent_relations_are_allowed_by_the_file_that_says_so(
    hospital: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same for ``load``, ``mark`` and Python: a file for several databases says so, any other has a typing error."""
    save(hospital, tmp_path / "graph")
    rules, words = tmp_path / "rules.yaml", ["mark", str(tmp_path / "graph"), "--rules"]
    rules.write_text("rules:\n- relation: takes\n- relation: taks\n", encoding="utf-8")
    assert main([*words, str(rules)]) == 3
    assert "taks" in capsys.readouterr().err
    rules.write_text("absent: allowed\n" + rules.read_text(encoding="utf-8"), encoding="utf-8")
    assert main([*words, str(rules), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["absent"] == ["taks"]
    assert main([*words, str(rules)]) == 0
    assert "passed over: taks" in capsys.readouterr().err


def test_what_hangs_unmarked_on_the_same_person_is_named() -> None:
    names = Vocabulary(
        ["admission/1", "disease/1", "gender/f", "hospital/1", "patient/1", "region/1", "ward/1"]
    )
    relations = Vocabulary(["gender", "has", "in", "located", "of", "whose"], "relation")
    at, kind = names.id, relations.id
    rows = [
        ("admission/1", "has", "disease/1"),
        ("admission/1", "in", "ward/1"),
        ("patient/1", "whose", "admission/1"),
        ("patient/1", "gender", "gender/f"),
        ("hospital/1", "located", "region/1"),
        ("ward/1", "of", "hospital/1"),
    ]
    graph = Graph(names, relations, {"train": np.array([(at(h), kind(r), at(t)) for h, r, t in rows])})
    marked = graph.with_marks(mark(graph, relations=["has"]))
    assert beside(marked) == {"gender": 1, "in": 1, "whose": 1}
    whole = graph.with_marks(mark(graph, relations=["has", "gender", "in", "whose"]))
    assert beside(whole) == {}
    assert beside(graph.with_marks(mark(graph, random_share=0.0))) == {}


@pytest.mark.parametrize("name", shipped())
def test_shipped_marks_leave_nothing_of_a_patient_but_what_they_name(name: str) -> None:
    """Every predicate a mapping says of a patient, stay or admission is marked, or is among those the file says it leaves."""
    left = {
        "eicu": "hasGender staysAt onWard inUnit ofPerson",
        "mimic-iii": "hasGender hasAdmission ofPatient hasStay admissionType admittedFrom calledOutFrom firstCareUnit "
        "firstWard lastCareUnit lastWard transferredFrom transferredFromWard transferredTo transferredToWard treatedBy caredForBy",
        "synthea": "hasGender bornIn livesIn",
    }
    text = (SHIPPED / f"{name}.ttl").read_text(encoding="utf-8")
    about: set[str] = set()
    for block in text.split("rr:logicalTable")[1:]:
        if re.search(r'subjectMap \[ rr:template "urn:\w+:(patient|stay|admission)/', block):
            about |= set(re.findall(r"rr:predicate :(\w+)", block))
    rules = yaml.safe_load((SHIPPED / f"{name}.marks.yaml").read_text(encoding="utf-8"))["rules"]
    marked = {rule["relation"].rpartition(":")[2] for rule in rules}
    assert about - marked == set(left[name].split())
    assert "hasDiagnosis" in marked or "hasCondition" in marked


@pytest.mark.parametrize("about", [["hasDiagnosis", "takes"], 7, None, ""])
@pytest.mark.parametrize("absent", ["allowed", "refused"])
def test_a_rule_is_about_one_name(hospital: Graph, about: object, absent: str) -> None:
    """A list was a pattern that met nothing, and «absent: allowed» passed it over."""
    for kind in ("relation", "type"):
        with pytest.raises(ConfigError, match=f"one rule for each {kind}"):
            mark_by_rules(hospital, {"absent": absent, "rules": [{"relation": "takes"}, {kind: about}]})
