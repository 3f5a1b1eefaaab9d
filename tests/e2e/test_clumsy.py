"""Clumsy and hostile input: refused with a message before work is done, nothing left behind, nothing promised that does not hold."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
import yaml

from veilgraph.cli import main
from veilgraph.cli.plan import show
from veilgraph.load import Graph, load, save
from veilgraph.mark import mark

QUICK = ["--model", "distmult", "--dimension", "8", "--epochs", "1", "--threads", "1"]


@pytest.fixture(scope="module")
def place(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A marked graph, the same unmarked, an ordinary run and a private one."""
    folder = tmp_path_factory.mktemp("clumsy")
    save(hospital, folder / "plain")
    save(hospital.with_marks(mark(hospital, relations=["hasDiagnosis", "takes"])), folder / "graph")
    assert main(["train", str(folder / "plain"), "--out", str(folder / "ordinary"), *QUICK]) == 0
    assert (
        main(["train", str(folder / "graph"), "--out", str(folder / "private"), "--epsilon", "2", *QUICK])
        == 0
    )
    return folder


def _refused(capsys: pytest.CaptureFixture[str], words: list[str], *, code: int = 3) -> str:
    capsys.readouterr()
    assert main(words) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert said.err.startswith("veil ")
    return said.err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rules:\n- relation: takes\nunit: head\nper_unit: 1.5\n", "whole number"),
        ("rules:\n- relation: takes\nunit: head\nper_unit: x\n", "whole number"),
        ("rules:\n- relation: takes\nunit: head\nper_unit: 99999999999999999999\n", "whole number"),
        ("rules:\n- relation: takes\nunti: head\n", "Nearest: unit"),
        ("rules:\n- {relation: takes, type: patient}\n", "two rules"),
        ("rules:\n- {random_share: x}\n", "between 0 and 1"),
        ("rules:\n- {random_share: 0.5, seed: 99999999999999999999}\n", "seed"),
        ("rules:\n- {query: 5}\n", "SPARQL"),
    ],
)
def test_rules_that_would_protect_too_little_are_refused(
    place: Path, tmp_path: Path, text: str, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(text)
    assert wanted in _refused(
        capsys, ["mark", str(place / "plain"), "--rules", str(rules), "--out", str(tmp_path / "g")]
    )
    assert not (tmp_path / "g").exists()


def test_a_graph_is_not_read_without_its_names_and_marks(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Name the folder" in _refused(capsys, ["load", str(place / "graph" / "train.parquet")])
    shutil.copytree(place / "graph", tmp_path / "g")
    (tmp_path / "g" / "graph.yaml").unlink()
    assert "graph.yaml is missing" in _refused(capsys, ["load", str(tmp_path / "g")])


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("marginals.safetensors", "gone"),
        ("ledger.jsonl", "cut"),
        ("config.yaml", "cut"),
        ("relations.safetensors", "garbage"),
        ("marginals.safetensors", "garbage"),
        ("certificate.json", "{}"),
        ("certificate.json", "[1, 2]"),
        ("curator.json", '{"salt": "zz"}'),
    ],
)
def test_a_damaged_run_answers_nothing(
    place: Path, tmp_path: Path, name: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither answers, nor figures, nor an ε from what is left of it."""
    run = tmp_path / "run"
    shutil.copytree(place / "private", run)
    data = (run / name).read_bytes()
    if how == "gone":
        (run / name).unlink()
    elif how == "cut":
        lines = data.splitlines(keepends=True)
        (run / name).write_bytes(b"".join(lines[: 2 * len(lines) // 3]))
    else:
        (run / name).write_text(how)
    graph = ["--graph", str(place / "graph")]
    for words in (
        ["evaluate", str(run), *graph],
        ["attack", "membership", str(run), *graph],
        ["report", str(run), *graph],
    ):
        capsys.readouterr()
        assert main(words) in (3, 5), words
        assert "Traceback" not in capsys.readouterr().err
    assert main(["certificate", "verify", str(run), *graph]) in (3, 5)


def test_what_is_not_a_run_is_said(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds a graph" in _refused(capsys, ["evaluate", str(place / "graph")])
    assert "no such folder" in _refused(capsys, ["evaluate", str(tmp_path / "nowhere")])


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "private", "--claim", "nan", "--canaries", "10"],
        ["audit", "private", "--claim", "-1", "--canaries", "10"],
        ["attack", "membership", "ordinary", "--count", "0"],
        ["attack", "membership", "ordinary", "--shadows", "-1"],
        ["attack", "membership", "ordinary", "--seed", "-1"],
        ["mark", "suggest", "graph", "--confidence", "2"],
        ["mark", "suggest", "graph", "--confidence", "nan"],
        ["mark", "suggest", "graph", "--luck", "-1"],
        ["mark", "plain", "--random-share", "0.5", "--seed", "99999999999999999999", "--out", "new"],
        ["load", "plain", "--split", "random", "--seed", "99999999999999999999"],
        ["load", "plain", "--valid", "0.5"],
        ["load", "plain", "--mapping", "eicu"],
        ["report", "private", "--canaries", "-1"],
        ["train", "plain", "--task", "labels", "--out", "new"],
        ["train", "plain", "--encoder-layers", "2", "--out", "new"],
        ["train", "plain", "--encoder", "kegcn", "--encoder-score", "foo", "--out", "new"],
        ["train", "plain", "--encoder", "rgcn", "--task", "labels", "--out", "new"],
        ["demo", "--patients", "20", "--epsilon", "0", "--out", "new"],
        ["demo", "--patients", "20", "--epochs", "-1", "--out", "new"],
        ["tune", "plain", "--model", "distmult", "--out", "graph"],
    ],
)
def test_numbers_and_settings_that_make_no_sense(
    place: Path,
    tmp_path: Path,
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Refused before any work, and the next try finds the way free."""
    monkeypatch.chdir(place)
    before = sorted(path.name for path in place.iterdir())
    capsys.readouterr()
    assert main(words) in (2, 3)
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"veil {words[0]}: ")
    assert sorted(path.name for path in place.iterdir()) == before


@pytest.mark.parametrize("target", ["folder", "nowhere/page.html", "graph/marks.yaml"])
def test_where_nothing_can_be_written_is_said_before_the_work(
    place: Path, target: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    (place / "folder").mkdir(exist_ok=True)
    assert target in _refused(capsys, ["mark", "suggest", "graph", "--out", target])
    if not target.startswith("graph"):
        assert target in _refused(capsys, ["plan", "graph", "--epsilons", "1", "--out", target])
        assert target in _refused(capsys, ["report", "private", "--out", target])
    assert not list(place.glob("*.tmp"))
    assert load("graph").marks is not None


def test_a_file_that_is_there_is_replaced_when_asked_for_only(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any work; a link that leads nowhere is a file too."""
    work, link = tmp_path / "thesis.txt", tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    graph, private = str(place / "graph"), str(place / "private")
    for words in (
        ["mark", "suggest", graph, "--relation", "hasDiagnosis"],
        ["plan", graph, "--epsilons", "1"],
        ["report", private],
        ["sanitise", private, "--with", "shuffle", "--top", "2"],
    ):
        for path in (work, link):
            work.write_text("three years of work")
            assert "--force" in _refused(capsys, [*words, "--out", str(path)], code=2)
            assert work.read_text() == "three years of work"
            assert link.is_symlink()
    assert main(["mark", "suggest", graph, "--relation", "hasDiagnosis", "--out", str(work), "--force"]) == 0
    assert "three years" not in work.read_text()
    assert main(["report", private, "--out", str(work), "--force"]) == 0
    assert main(["report", private]) == main(["report", private]) == 0  # its own place, in the run
    assert "nothing here" in _refused(capsys, ["mark", graph, "--everything", "--force"], code=2)


def test_words_may_come_after_flags(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(place / "ordinary"), "--top", "2", "--json", "patient/17", "takes"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    with pytest.raises(SystemExit):
        main(["predict", str(place / "ordinary"), "--top", "2", "patient/17", "takes", "drug/1", "more"])


def test_steps_that_were_not_taken_are_not_claimed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(place / "graph"), "--epsilon", "1", "--noise-multiplier", "1", *QUICK]
    assert main([*words, "--out", str(tmp_path / "run"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["private_steps"] < found["private_steps_planned"]
    assert main(["certificate", "verify", str(tmp_path / "run")]) == 0


def test_a_plan_speaks_of_its_stand_ins(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was rehearsed on is said, and there is something to judge by."""
    words = ["plan", str(place / "graph"), "--epsilons", "1", *QUICK]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(count >= 100 for count in found["statements"]["judged"])
    names = [rule["relation"] for rules in found["stand_in"] for rule in rules]
    assert names
    show(found)
    said = capsys.readouterr()
    assert all(name in said.err for name in names)
    assert found["advice"].split(":")[0] in said.out + said.err
    assert all(0.5 <= row["ceiling"] <= 1 for row in found["rows"])
    assert all(math.isfinite(row["mrr"]) for row in found["rows"])
    assert yaml.safe_load((place / "graph" / "marks.yaml").read_text())["unit"] == "statement"


def test_a_database_may_be_named_either_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a mapping, as the source or with --database: both look for the file."""
    address = f"sqlite:///{tmp_path / 'no.db'}"
    for words in ([address], ["--database", address]):
        assert "no such file" in _refused(capsys, ["load", *words, "--mapping", "eicu"])
