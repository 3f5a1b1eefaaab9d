"""Labels with a guarantee: what is charged, what a folder shows, and what tampering does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.classify.clubs import CLUBS, SETTINGS
from tests.ledgers import rewrite
from veilgraph import registry
from veilgraph.account.certificate import seal
from veilgraph.classify import classify, folder
from veilgraph.classify.guarantees import guarantee
from veilgraph.classify.guarantees.edge import SUMS, sums_of
from veilgraph.classify.places import places
from veilgraph.cli import main
from veilgraph.errors import InputError, PrivacyError, RunError, VeilError
from veilgraph.files import as_json, cell
from veilgraph.load import Vocabulary, load
from veilgraph.load.labels import Labels


def few(name: str, steps: int, hops: int | None = None) -> dict[str, int]:
    """Settings that make a guarantee quick, as far as it reads them."""
    asked = {"steps": steps, "hops": hops}
    return {key: n for key, n in asked.items() if n is not None and key in guarantee(name).reads}


@pytest.mark.parametrize("name", registry.names("guarantees"))
def test_every_guarantee_stays_within_its_budget_and_can_be_verified(
    name: str, town: Path, tmp_path: Path
) -> None:
    found = classify(town, guarantee=name, epsilon=3.0, out=tmp_path / "out", **few(name, 60), **SETTINGS)
    assert 0 < found["epsilon"] <= 3.0
    assert found["guarantee"] == name
    said = folder.verify(tmp_path / "out")
    assert said["valid"], said["reasons"]
    assert said["epsilon"] == pytest.approx(found["epsilon"])
    certificate = folder.read_certificate(tmp_path / "out")
    assert certificate["unit"] == guarantee(name).unit
    assert certificate["guarantee"] == "dp"
    open_answers = (tmp_path / "out" / "answers.tsv").exists()
    assert open_answers == (name != "node")  # a node's answer is made from its own statements


@pytest.mark.parametrize("name", registry.names("guarantees"))
def test_what_is_edited_fails(name: str, town: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    classify(town, guarantee=name, epsilon=3.0, out=out, **few(name, 60), **SETTINGS)
    ledger = (out / "ledger.jsonl").read_text()
    (out / "ledger.jsonl").write_text("".join(ledger.splitlines(keepends=True)[:-1]))
    assert not folder.verify(out)["valid"]
    (out / "ledger.jsonl").write_text(ledger)
    assert folder.verify(out)["valid"]
    about = json.loads((out / "classification.json").read_text())
    about["settings"]["delta"] = 1e-3
    (out / "classification.json").write_text(json.dumps(about))
    assert not folder.verify(out)["valid"]


@pytest.mark.parametrize("name", registry.names("guarantees"))
def test_a_seed_for_the_noise_is_no_guarantee(name: str, town: Path, tmp_path: Path) -> None:
    settings = {"guarantee": name, "epsilon": 3.0, "insecure_noise_seed": 1, **few(name, 20), **SETTINGS}
    first, second = (classify(town, **settings) for _ in range(2))
    assert first == second
    assert first["epsilon"] is None
    classify(town, out=tmp_path / "out", **settings)
    said = folder.read_certificate(tmp_path / "out")
    assert said["epsilon"] is None
    assert said["statement"].startswith("No privacy is promised")
    for number in range(2):
        fresh = {**settings, "insecure_noise_seed": None, "out": tmp_path / f"fresh{number}"}
        classify(town, **fresh)
    released = [(tmp_path / f"fresh{number}" / "network.safetensors").read_bytes() for number in range(2)]
    assert released[0] != released[1]


@pytest.mark.parametrize(("name", "least"), [("edge", 0.8), ("node", 0.8)])
def test_little_noise_leaves_much_to_learn(town: Path, name: str, least: float) -> None:
    found = classify(town, guarantee=name, epsilon=50.0, **few(name, 100, 16), **SETTINGS)
    assert found["accuracy"] > least  # a coin: 1/3
    assert classify(town, drop_confidential=True, epochs=20, **SETTINGS)["accuracy"] < 0.5


def test_labels_can_be_protected_on_a_public_graph(town: Path) -> None:
    found = classify(
        town.parent / "all.tsv",
        town / "labels.tsv",
        guarantee="label",
        epsilon=50.0,
        steps=100,
        hops=32,
        **SETTINGS,
    )
    assert found["accuracy"] > 0.8


def test_nothing_public_gives_noise_and_not_gaps(town: Path, tmp_path: Path) -> None:
    """Places of nobody are zeros: rows that are no numbers would show who has a statement."""
    from veilgraph.files import read_arrays

    graph = load(town.parent / "all.tsv")
    classify(graph, town / "labels.tsv", guarantee="edge", epsilon=1.0, out=tmp_path / "out", **SETTINGS)
    assert np.isfinite(read_arrays(tmp_path / "out" / SUMS)[0]["sum0"]).all()
    assert not places(np.array([[0, 0, 0]]), 3, 4, 4, 0)[1:].any()
    assert np.isfinite(places(np.empty((0, 3), int), 3, 4, 4, 0)).all()
    wild = np.array([[np.nan, 1.0], [np.inf, 0.0], [1.0, 0.0]])
    assert np.isfinite(sums_of(wild, np.array([[0, 0, 1], [2, 0, 0], [1, 0, 2]]), 3, "both")).all()


@pytest.mark.parametrize("name", registry.names("guarantees"))
def test_a_ledger_cannot_be_cut_back_by_running_again(name: str, town: Path, tmp_path: Path) -> None:
    out, settings = tmp_path / "out", {"guarantee": name, "epsilon": 2.0, **few(name, 120), **SETTINGS}
    classify(town, out=out, **settings)
    ledger = out / "ledger.jsonl"
    whole = ledger.read_text()
    lines = whole.splitlines(keepends=True)
    for less in (
        "",
        lines[0] if name != "edge" else "",
        whole.replace('"noise_multiplier": ', '"noise_multiplier": 9'),
    ):
        rewrite(ledger, less.splitlines())
        with pytest.raises(VeilError):
            classify(town, out=out, **settings)
    ledger.write_text(whole)
    classify(town, out=out, **settings)
    assert folder.verify(out)["valid"]


def test_the_list_of_labels_does_not_come_from_protected_ones(town: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.tsv"
    table.write_text((town / "labels.tsv").read_text() + "p7\tsecret\n")
    for name in ("label", "node"):
        with pytest.raises(PrivacyError, match="label-names"):
            classify(town, table, guarantee=name, epsilon=1.0, share=0.5)
        found = classify(town, table, guarantee=name, epsilon=1.0, steps=5, **SETTINGS)
        assert found["labels"] == 3  # whoever has another is as if unlabelled
    listed = tmp_path / "names.txt"
    listed.write_text("\n".join(CLUBS))
    assert (
        classify(town, table, guarantee="label", epsilon=1.0, steps=5, share=0.5, names=listed)["labels"] == 3
    )


def test_labels_one_step_away_are_protected_too(tmp_path: Path) -> None:
    """On a graph nobody marked, a path of one relation ends in the very labels that are protected: they list no public names."""
    (tmp_path / "g.tsv").write_text(
        "".join(f"p{i}\tknows\tp{(i * 7 + 1) % 40}\np{i}\thas\t{'a' if i % 2 else 'b'}\n" for i in range(40))
        + "p7\thas\trare\n"
    )
    for by in ("has", "has/has"):
        with pytest.raises((PrivacyError, InputError), match=r"label-names|no .*label"):
            classify(tmp_path / "g.tsv", by=by, guarantee="label", epsilon=1.0, share=0.5, steps=2)


def test_a_table_that_is_not_there_is_not_replaced_by_another(town: Path) -> None:
    with pytest.raises(InputError, match="no table"):
        classify(town, town / "typo.tsv")


@pytest.mark.parametrize(
    "file", ["classification.json", "certificate.json", "ledger.jsonl", "aggregates.safetensors"]
)
@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"settings": 5}', "\x00"])
def test_damaged_folders_are_not_valid(town: Path, tmp_path: Path, file: str, content: str) -> None:
    out = tmp_path / "out"
    classify(town, guarantee="edge", epsilon=2.0, out=out, **SETTINGS)
    (out / file).write_text(content)
    said = folder.verify(out)
    assert not said["valid"]
    assert said["reasons"]


def test_an_edited_certificate_is_not_shown(
    town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    classify(town, guarantee="label", epsilon=3.0, out=out, **few("label", 60), **SETTINGS)
    path, whole = out / "certificate.json", (out / "certificate.json").read_bytes()
    assert main(["certificate", str(out)]) == 0
    edited = json.loads(whole) | {"epsilon": 0.01, "statement": "ε = 0.01: nobody can tell anything."}
    for text in (
        json.dumps(edited),
        as_json(edited | {"seal": seal({k: v for k, v in edited.items() if k != "seal"})} | {"hashes": {}}),
        whole.decode().replace("  ", " "),
        "[" * 100_000,
        "{}",
        '"text"',
    ):
        path.write_text(text)
        capsys.readouterr()
        assert main(["certificate", str(out)]) == 5
        said = capsys.readouterr()
        assert "damaged" in said.err
        assert "0.01" not in said.out
    path.write_bytes(whole)
    for name in ("answers.tsv", "ledger.jsonl", "network.safetensors", "classification.json"):
        kept = (out / name).read_bytes()
        (out / name).write_bytes(kept + b" \n")
        assert main(["certificate", str(out)]) == 5
        (out / name).write_bytes(kept)
    assert main(["certificate", str(out)]) == 0


def test_settings_that_nest_deeply_are_a_sentence(
    town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    classify(town, guarantee="label", epsilon=3.0, out=out, **few("label", 60), **SETTINGS)
    (out / "classification.json").write_text("[" * 200_000)
    assert not folder.verify(out)["valid"]
    with pytest.raises(RunError, match="damaged"):
        classify(town, guarantee="label", epsilon=3.0, out=out, **few("label", 60), **SETTINGS)


def test_a_row_of_answers_is_a_row_whatever_names_hold(town: Path, tmp_path: Path) -> None:
    """A name with a tab and a line end, as Parquet allows it, wrote rows about others."""
    bad = "p0\tclub1\t1.0000\np1"
    graph = load(town)
    names = [bad if name == "p7" else name for name in graph.entities]
    renamed = replace(graph, entities=Vocabulary(names))
    out = tmp_path / "out"
    people = [f"p{i}" for i in range(300) if i != 7]
    clubs = np.array([int(name[1:]) % 3 for name in people])
    labels = Labels(np.array([renamed.entities.id(name) for name in people]), clubs, CLUBS)
    classify(renamed, labels, guarantee="label", epsilon=3.0, out=out, **few("label", 60), **SETTINGS)
    rows = [line.split("\t") for line in (out / "answers.tsv").read_text().splitlines()]
    assert {len(row) for row in rows} == {3}
    assert len(rows) == len(names)
    assert [row[0] for row in rows if "p0" in row[0] and "club1" in row[0]] == [json.dumps(bad)]
    written = [cell(name) for name in ("a\tb", '"a\\tb"', 'a"b', '"a"', "a\x85b", "a\u2028b", "plain")]
    assert len(set(written)) == len(written)
    assert all(len(one.splitlines()) == 1 and "\t" not in one for one in written)
    assert cell('"a"') == '"a"'
