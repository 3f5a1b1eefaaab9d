"""Exports: readable by other tools, and the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from veilgraph.errors import UnknownNameError, UsageError
from veilgraph.load import Graph, Vocabulary
from veilgraph.models.prior import Prior
from veilgraph.rank.scoring import score_all
from veilgraph.run.export import export
from veilgraph.run.formats.counts import write_counts
from veilgraph.run.formats.pykeen import PYKEEN, load_pykeen
from veilgraph.run.run import Run
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


NAMES = ("parquet", "npy", "tsv", "word2vec", "pykeen", "run")


def test_every_format_writes_every_row(run: Run, tmp_path: Path) -> None:
    rows = run.parameters.entities.numpy()
    for format in NAMES:
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


# --- noisy counts -------------------------------------------------------------------------------------------------------
def _stranger(
    folder: Path, format: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[tuple[str, str], np.ndarray]]:
    """Entity rows, relation rows, and counts by relation and side, read as somebody would who knows the files alone."""
    if format == "parquet":
        entities, relations = (
            pq.read_table(folder / f"{kind}.parquet") for kind in ("entities", "relations")
        )
        counts = pq.read_table(folder / "counts.parquet").to_pylist()
        found = {(row["relation"], row["side"]): np.array(row["values"]) for row in counts}
        rows = [
            np.stack([np.array(v) for v in table["vector"].to_pylist()]) for table in (entities, relations)
        ]
        return rows[0], rows[1], np.array(relations["name"].to_pylist()), found
    if format == "npy":
        names = (folder / "relations.txt").read_text(encoding="utf-8").splitlines()
        keys = [
            tuple(line.split("\t"))
            for line in (folder / "counts.txt").read_text(encoding="utf-8").splitlines()
        ]
        found = dict(zip(keys, np.load(folder / "counts.npy")))  # type: ignore[arg-type]
        return np.load(folder / "entities.npy"), np.load(folder / "relations.npy"), np.array(names), found  # type: ignore[return-value]
    separator, ending, first = ("\t", "tsv", 0) if format == "tsv" else (" ", "txt", 1)
    tables = []
    for kind in ("entities", "relations"):
        lines = (folder / f"{kind}.{ending}").read_text(encoding="utf-8").splitlines()[first:]
        tables.append([line.split(separator) for line in lines])
    numbers = [np.array([[float(x) for x in line[1:]] for line in table]) for table in tables]
    cells = [line.split("\t") for line in (folder / "counts.tsv").read_text(encoding="utf-8").splitlines()]
    found = {(cell[0], cell[1]): np.array([float(x) for x in cell[2:]]) for cell in cells}
    return numbers[0], numbers[1], np.array([line[0].replace("_", " ") for line in tables[1]]), found


@pytest.mark.parametrize("format", ["parquet", "npy", "tsv", "word2vec"])
@pytest.mark.parametrize("model", ["distmult", "marginals"])
def test_what_is_exported_answers_as_the_run_answers(
    model: str, format: str, hospital: Graph, tmp_path: Path
) -> None:
    """With a promise most of what was learnt is in the counts: they were left out without a word."""
    private = train(hospital, out=tmp_path / "run", model=model, dimension=8, epsilon=2.0, threads=1)
    assert private.prior is not None
    entities, relations, names, counts = _stranger(export(private, tmp_path / "out", format), format)
    for number, relation in enumerate(private.relations):
        assert names[number] == relation
        source = torch.tensor([0, 7, 30])
        asked = torch.full_like(source, number)
        ours = score_all(private.model, private.parameters, source, asked, side="tail", reciprocal=True)
        theirs = (entities[source.numpy()] * relations[number]) @ entities.T + counts[(relation, "tail")]
        np.testing.assert_allclose(theirs, ours.numpy(), atol=1e-3)
    assert (tmp_path / "out" / "counts-README.txt").is_file()


def test_large_tables_are_exported_by_their_cells(tmp_path: Path) -> None:
    prior = Prior(1, 4, None, torch.tensor([0, 2, 3]), torch.tensor([1, 3, 0]), torch.tensor([2.0, 0.5, 1.0]))
    entities, relations = Vocabulary(["a", "b", "c", "d"]), Vocabulary(["likes"], "relation")
    for format in ("parquet", "npy", "tsv"):
        write_counts(prior, entities, relations, tmp_path, format)
    rows = pq.read_table(tmp_path / "counts.parquet").to_pylist()
    assert rows[0] == {"relation": "likes", "side": "tail", "entities": ["b", "d"], "values": [2.0, 0.5]}
    assert np.load(tmp_path / "counts-starts.npy").tolist() == [0, 2, 3]
    assert (tmp_path / "counts.tsv").read_text().splitlines()[-1] == "likes\thead\ta\t1"


def test_a_run_without_counts_has_none_beside_it(run: Run, tmp_path: Path) -> None:
    assert not list(export(run, tmp_path / "out", "parquet").glob("counts*"))
