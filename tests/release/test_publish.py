"""A graph made public: what its certificate is about, and that anybody can learn from it."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest

from veilgraph.errors import InputError, PrivacyError, RunError, UsageError, VerificationError
from veilgraph.layout import PUBLIC_GRAPH
from veilgraph.load import Graph, load, save, split
from veilgraph.load.store import open_graph
from veilgraph.mark import mark
from veilgraph.report.health import examine
from veilgraph.train import train
from veilgraph.train.publish import read_certificate, release, verify_release

TEACHER = {"model": "complex", "dimension": 16, "epochs": 4, "threads": 1}


@pytest.fixture(scope="module")
def hospital() -> Graph:
    graph = split(load("builtin:hospital", patients=300), valid=0.05, test=0.05)
    return graph.with_marks(mark(graph, random_share=0.5))


@pytest.fixture(scope="module")
def public(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "public"
    made = release(hospital, epsilon=4.0, out=folder, formats=("tsv", "nt"), accept_reached=True, **TEACHER)
    assert made["epsilon"] <= 4.0
    assert made["bound"] == "reached"
    assert made["attack_accuracy"] == pytest.approx(1 / (1 + np.exp(-3.96)), abs=0.01)
    return folder


def test_nothing_confidential_but_answers_is_in_it(hospital: Graph, public: Path) -> None:
    """Held-out statements that are confidential were not read, and are not there; unrestricted ones are, as they were."""
    graph = open_graph(public)
    assert graph.marks is None
    for name in ("valid", "test"):
        np.testing.assert_array_equal(graph.split(name), hospital.split(name)[~hospital.secret(name)])
    known = hospital.train[~hospital.secret("train")]
    np.testing.assert_array_equal(graph.train[: len(known)], known)
    told = np.isin(graph.keys(graph.train[len(known) :]), hospital.keys(hospital.train))
    assert 0.3 < told.mean() < 1  # most are true, and nobody can be sure which


def test_the_certificate_is_of_these_files(public: Path, tmp_path: Path) -> None:
    """Any file changed, added or gone, and it does not verify; the health page says so too."""
    found = verify_release(public)
    assert found == {"valid": True, "epsilon": found["epsilon"], "delta": 1e-6, "reasons": []}
    assert examine(public)["kind"] == "release"
    assert examine(public)["whole"]
    for name in sorted(path.name for path in public.iterdir()):
        copy = tmp_path / name
        shutil.copytree(public, copy)
        data = bytearray((copy / name).read_bytes())
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(data)
        assert not verify_release(copy)["valid"], name
        assert not examine(copy)["whole"], name
        with pytest.raises((VerificationError, RunError, InputError)):
            read_certificate(copy)
        (copy / name).unlink()
        assert not verify_release(copy)["valid"], name
    assert all(path.stat().st_mode & 0o044 for path in public.iterdir())
    assert {path.suffix for path in public.iterdir()} == {Path(one.name).suffix for one in PUBLIC_GRAPH}


def test_anybody_can_read_it(public: Path) -> None:
    with (public / "statements.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    graph = open_graph(public)
    assert len(rows) == len(graph.train)
    assert [row["head"] for row in rows[:50]] == [graph.entities[int(h)] for h in graph.train[:50, 0]]
    chances = np.array([float(row["probability"]) for row in rows])
    assert ((chances > 0) & (chances <= 1)).all()
    assert (chances < 1).any()
    store = pyoxigraph.Store()
    with (public / "statements.nt").open("rb") as file:
        store.load(file, "application/n-triples")
    quoted = [q for q in store if q.predicate.value == "urn:veilgraph:probability"]
    assert len(quoted) == len(rows)
    assert sorted(float(q.object.value) for q in quoted) == pytest.approx(sorted(chances.tolist()))


def test_what_is_learnt_from_it_is_what_a_training_on_answers_learns(
    hospital: Graph, public: Path, tmp_path: Path
) -> None:
    """An ordinary training on the folder finds more than one on unrestricted statements alone, as ``--mechanism respond`` does."""
    settings = {"model": "complex", "dimension": 32, "epochs": 30, "threads": 1}
    asked = hospital.split("test")[hospital.secret("test")]
    found = {}
    for name, run in {
        "released": train(open_graph(public), out=tmp_path / "released", **settings),
        "dropped": train(hospital, out=tmp_path / "dropped", drop_confidential=True, **settings),
    }.items():
        whole = hospital.with_marks(None).with_splits({"train": hospital.train, "test": asked})
        from veilgraph.rank.metrics import summarise
        from veilgraph.rank.ranking import Ranker

        ranks = Ranker(whole.triples, len(whole.relations)).rank(
            run.model, run.parameters, asked, reciprocal=True
        )
        found[name] = summarise(ranks.rank, ranks.candidates)["mrr"]
    assert found["released"] > found["dropped"]


def test_what_cannot_be_released_is_said(hospital: Graph, public: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists already"):
        release(hospital, epsilon=1.0, out=public)
    with pytest.raises(InputError, match="nothing is marked"):
        release(hospital.with_marks(None), epsilon=1.0, out=tmp_path / "x")
    with pytest.raises(PrivacyError, match="rely on it"):
        release(hospital, epsilon=8.0, out=tmp_path / "x", **TEACHER)
    with pytest.raises(UsageError, match="formats"):
        release(hospital, epsilon=1.0, out=tmp_path / "x", formats=("pdf",))
    assert not list(tmp_path.iterdir())
    save(hospital, tmp_path / "graph")
    made = release(str(tmp_path / "graph"), epsilon=1.0, out=tmp_path / "by-name", **TEACHER)
    assert made["epsilon"] <= 1.0
