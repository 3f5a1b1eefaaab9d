"""Run folders of strangers whose tensors are not what training writes, though every hash fits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from veilgraph.account.certificate import seal
from veilgraph.cli import main
from veilgraph.disk import digest
from veilgraph.errors import RunError
from veilgraph.files import as_json, read_tensors
from veilgraph.load import load, save
from veilgraph.models.prior import Prior
from veilgraph.train import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tensors")
    (place / "a.tsv").write_text("".join(f"p{i}\thas\td{i % 3}\n" for i in range(9)))
    save(load(place / "a.tsv"), place / "g")
    chosen = {"dimension": 4, "epochs": 1, "threads": 1, "validate_every": 0}
    train(load(place / "g"), out=place / "r", model="distmult", **chosen)
    return place / "r"


def forged(
    run: Path, folder: Path, name: str, tensors: dict[str, torch.Tensor], about: str | None = None
) -> Path:
    """The run with another file of tensors, certified again."""
    shutil.copytree(run, folder)
    save_file(tensors, folder / name, None if about is None else {"veilgraph": about})
    document = json.loads((folder / "certificate.json").read_text())
    document["hashes"][name] = digest(folder / name)
    document["seal"] = seal(document)
    (folder / "certificate.json").write_text(as_json(document))
    return folder


ROWS = {
    "whole numbers": torch.ones(12, 4, dtype=torch.int64), "half": torch.ones(12, 4, dtype=torch.bfloat16),
    "yes or no": torch.ones(12, 4, dtype=torch.bool), "wider": torch.ones(12, 5), "of nothing": torch.ones(12, 0),
    "flat": torch.ones(12), "double": torch.ones(12, 4, dtype=torch.float64),
}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", ["entities.safetensors", "relations.safetensors"])
def test_rows_are_what_training_writes(
    kind: str, name: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ROWS[kind] if name.startswith("e") else ROWS[kind][:2]
    folder = forged(trained, tmp_path / "r", name, {"rows": rows})
    assert main(["predict", str(folder), "p0", "has"]) == 3
    said = capsys.readouterr().err
    assert "foresaw" not in said
    assert "rows of" in said or "no tables" in said


@pytest.mark.parametrize("about", ["[]", "[" * 100_000, "5", "null", '{"a": ' * 50_000])
def test_what_is_said_of_tensors_is_an_object(about: str, trained: Path, tmp_path: Path) -> None:
    folder = forged(trained, tmp_path / "r", "entities.safetensors", {"rows": torch.ones(12, 4)}, about)
    with pytest.raises(RunError, match="is damaged"):
        read_tensors(folder / "entities.safetensors", digest(folder / "entities.safetensors"))


def test_a_run_as_it_was_is_asked(trained: Path, tmp_path: Path) -> None:
    rows = load_file(trained / "entities.safetensors")
    assert (
        main(["predict", str(forged(trained, tmp_path / "r", "entities.safetensors", rows)), "p0", "has"])
        == 0
    )


@pytest.mark.parametrize(
    "edit",
    [
        {"ids": torch.tensor([0, 99])}, {"ids": torch.tensor([-1, 2])}, {"starts": torch.tensor([0, 1, 9])},
        {"starts": torch.tensor([0, 2, 1])}, {"values": torch.ones(3)}, {"ids": torch.ones(2)}, {"starts": torch.tensor([0, 2])},
        {"values": torch.ones(2, dtype=torch.float64)}, {"table": torch.ones(2, 4)}, {"shape": torch.tensor([-1, 3])},
    ],
)  # fmt: skip
def test_counts_name_places_that_are_there(edit: dict[str, torch.Tensor]) -> None:
    """Compiled code writes where they say."""
    whole = Prior(1, 3, None, torch.tensor([0, 1, 2]), torch.tensor([0, 2]), torch.ones(2)).tensors()
    assert Prior.of(whole).entities == 3
    with pytest.raises(ValueError, match="do not fit"):
        Prior.of({**whole, **edit})


def test_a_classification_that_nests_without_end_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("classification.json", "certificate.json"):
        (tmp_path / name).write_text("[" * 200_000)
    for words in (["certificate", "verify"], ["certificate"], ["doctor"]):
        assert main([*words, str(tmp_path)]) in (3, 5)
        assert "foresaw" not in capsys.readouterr().err
