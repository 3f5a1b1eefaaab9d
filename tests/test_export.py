"""Exports: readable by other tools, and the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from veilgraph.errors import UnknownNameError, UsageError
from veilgraph.evaluate.scoring import score_all
from veilgraph.export import FORMATS, PYKEEN, export, load_pykeen
from veilgraph.load import Graph
from veilgraph.runs import Run
from veilgraph.train import train


@pytest.fixture(scope="module")
def run(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(
        hospital,
        out=tmp_path_factory.mktemp("export") / "run",
        model="complex",
        dimension=8,
        epochs=1,
        threads=1,
    )


def test_every_format_writes_every_row(run: Run, tmp_path: Path) -> None:
    rows = run.parameters.entities.numpy()
    for format in FORMATS:
        export(run, tmp_path / format, format)
    table = pq.read_table(tmp_path / "parquet" / "entities.parquet")
    np.testing.assert_array_equal(np.stack(table["vector"].to_pylist()).astype(np.float32), rows)
    assert table["name"].to_pylist() == list(run.entities)
    np.testing.assert_array_equal(np.load(tmp_path / "npy" / "entities.npy"), rows)
    assert (tmp_path / "npy" / "entities.txt").read_text().splitlines() == list(run.entities)
    first = (tmp_path / "tsv" / "entities.tsv").read_text().splitlines()[0].split("\t")
    np.testing.assert_allclose([float(x) for x in first[1:]], rows[0], rtol=1e-6)
    lines = (tmp_path / "word2vec" / "entities.txt").read_text().splitlines()
    assert lines[0] == f"{rows.shape[0]} {rows.shape[1]}"
    assert len(lines) == rows.shape[0] + 1
    assert "takes (inverse)" in pq.read_table(tmp_path / "parquet" / "relations.parquet")["name"].to_pylist()


@pytest.mark.parametrize(("name", "norm"), [*((name, 1) for name in PYKEEN), ("transe", 2), ("rotate", 2)])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_pykeen_gives_the_same_scores(
    name: str, norm: int, reciprocal: bool, hospital: Graph, tmp_path: Path
) -> None:
    pytest.importorskip("pykeen")
    options = {
        "model": name,
        "norm": norm,
        "dimension": 8,
        "epochs": 1,
        "reciprocal": reciprocal,
        "threads": 1,
    }
    trained = train(hospital, out=tmp_path / "run", **options)
    model = load_pykeen(export(trained, tmp_path / "pykeen", "pykeen"))
    source, relation = torch.tensor([0, 5, 9]), torch.tensor([1, 2, 3])
    ours = score_all(trained.model, trained.parameters, source, relation, side="tail", reciprocal=reciprocal)
    with torch.no_grad():
        factor = 2 if reciprocal else 1
        theirs = model.score_t(torch.stack([source, relation * factor], 1))  # type: ignore[attr-defined]
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_refusals(run: Run, hospital: Graph, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="parquet"):
        export(run, tmp_path / "x", "parket")
    export(run, tmp_path / "y", "npy")
    with pytest.raises(UsageError, match="exists already"):
        export(run, tmp_path / "y", "npy")
    other = train(hospital, out=tmp_path / "run", model="quate", dimension=8, epochs=1, threads=1)
    with pytest.raises(UsageError, match="no counterpart"):
        export(other, tmp_path / "z", "pykeen")
    assert not (tmp_path / "z").exists()
