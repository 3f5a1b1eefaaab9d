"""Labels told by graph convolutions: learning, folds, measures, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from veilgraph import registry
from veilgraph.classify import classify, folds_of
from veilgraph.cli import main
from veilgraph.cli.classify import show
from veilgraph.errors import ConfigError, InputError, UnknownNameError
from veilgraph.load import load
from veilgraph.load.labels import read_labels
from veilgraph.rank.classification import measure


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three clubs whose members know each other and hold the club's cards; labels are clubs."""
    folder, rng = tmp_path_factory.mktemp("town"), np.random.default_rng(0)
    with (folder / "graph.tsv").open("w") as file:
        for person in range(120):
            club = person % 3
            for other in rng.choice(40, 3, replace=False):
                file.write(f"p{person}\tknows\tp{3 * other + club}\n")
            file.write(f"p{person}\tholds\tcard{club}{rng.integers(4)}\n")
    (folder / "labels.tsv").write_text("".join(f"p{i}\tclub{i % 3}\n" for i in range(120)))
    return folder


@pytest.mark.parametrize("model", registry.names("convolutions"))
def test_every_model_learns(town: Path, model: str) -> None:
    found = classify(
        town / "graph.tsv",
        model=model,
        seeds=2,
        share=0.3,
        dimension=8,
        layers=2,
        hidden=0.5,
        epochs=60,
        threads=1,
    )
    assert found["accuracy"] > 0.8  # a coin: 1/3
    assert found["macro_f1"] > 0.8
    assert found["interval"] is not None
    assert found["guarantee"] == "none"
    assert found["epsilon"] is None


def test_the_same_seed_tells_the_same(town: Path) -> None:
    settings = {"dimension": 8, "layers": 2, "epochs": 5, "threads": 1}
    first, second = (classify(town / "graph.tsv", seed=3, **settings) for _ in range(2))
    assert first == second


def test_folds_of_the_source_are_kept(town: Path, tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").write_text((town / "graph.tsv").read_text())
    for fold, people in (("train", range(60)), ("test", range(50, 120))):
        (tmp_path / f"labels_{fold}.tsv").write_text("".join(f"p{i}\tclub{i % 3}\n" for i in people))
    graph = load(tmp_path / "graph.tsv")
    folds = folds_of(read_labels(graph), len(graph.entities), 0.1, 0)
    assert len(folds.train) == 60
    assert len(folds.test) == 60  # who is in both is learnt from, not told
    assert not set(folds.train) & set(folds.test)


def test_several_labels_are_measured_by_the_first_five(town: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.tsv"
    table.write_text("".join(f"p{i}\tclub{i % 3}\np{i}\t{'even' if i % 2 else 'odd'}\n" for i in range(120)))
    found = classify(town / "graph.tsv", table, share=0.5, dimension=8, layers=2, epochs=20, threads=1)
    assert 0 < found["precision@5"] <= 1


def test_measures_by_hand() -> None:
    scores = np.array([[3.0, 1, 0], [0, 2, 1], [1, 0, 2], [5, 1, 0]])
    truth = np.eye(3)[[0, 1, 1, 0]]
    found = measure(scores, truth)
    assert found["accuracy"] == 0.75
    assert found["macro_f1"] == pytest.approx((1.0 + 2 / 3) / 2)
    several = measure(np.array([[3.0, 2, 1], [1, 3, 2]]), np.array([[1, 1, 0], [0, 1, 0]]))
    assert several["precision@5"] == 0.5  # three true cells of six
    assert several["macro_f1"] == 1.0


def test_bad_input_is_explained(town: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = str(town / "graph.tsv")
    with pytest.raises(UnknownNameError, match="kegcn"):
        classify(graph, model="gcn")
    with pytest.raises(ConfigError, match="multiple of 4"):
        classify(graph, score="quate", dimension=6)
    with pytest.raises(ConfigError, match="belongs to kegcn"):
        classify(graph, model="rgcn", score="transe")
    bad = tmp_path / "bad.tsv"
    bad.write_text("p1\tclub0\np2 club1\n")
    assert main(["classify", graph, "--labels", str(bad)]) == 3
    assert "line 2" in capsys.readouterr().err
    bad.write_text("nobody\tclub0\n")
    with pytest.raises(InputError, match="none of them is in the graph"):
        classify(graph, bad)
    (tmp_path / "graph.tsv").write_text("a\tr\tb\n")
    assert main(["classify", str(tmp_path / "graph.tsv")]) == 3
    assert "--labels" in capsys.readouterr().err
    words = ["--dimension", "8", "--layers", "2", "--epochs", "3", "--share", "0.3"]
    assert main(["classify", graph, *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {
        "task",
        "model",
        "accuracy",
        "interval",
        "macro_f1",
        "seeds",
        "epsilon",
        "delta",
        "guarantee",
    } <= set(found)


def test_an_accuracy_has_what_knows_nothing_beside_it(tmp_path: Path) -> None:
    """Of 200 people 170 have one label: a classifier that knows nothing is right that often."""
    rng = np.random.default_rng(0)
    (tmp_path / "graph.tsv").write_text(
        "".join(f"p{i}\tknows\tp{rng.integers(200)}\n" for i in range(200) for _ in range(3))
    )
    (tmp_path / "labels.tsv").write_text(
        "".join(f"p{i}\t{'ill' if i % 20 < 3 else 'healthy'}\n" for i in range(200))
    )
    asked = {
        "guarantee": "label",
        "epsilon": 0.3,
        "names": "healthy,ill",
        "share": 0.5,
        "steps": 20,
        "threads": 1,
    }
    found = classify(tmp_path / "graph.tsv", tmp_path / "labels.tsv", **asked)
    assert found["majority"] == pytest.approx(0.85, abs=0.06)
    assert found["coin"] == 0.5
    show(found)
