"""Federations that share an encoder's bases: what is shared, what is not, links and labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from veilgraph.cli import main
from veilgraph.errors import ConfigError, PrivacyError
from veilgraph.federate import federate
from veilgraph.run.run import Run
from veilgraph.train.rows.graph import BASES

TRAINING = {"model": "distmult", "dimension": 8, "encoder": "kegcn", "encoder_bases": 3, "encoder_edges": 300}
NAMES = ("client0", "client1", "client2")


def bases(folder: Path) -> list[np.ndarray]:
    return [Run.open(folder / "clients" / name).parameters.weights[BASES].numpy() for name in NAMES]


def test_bases_are_shared_and_nothing_else(clients: Path, tmp_path: Path) -> None:
    terms = {"rounds": 2, "local_epochs": 1, "training": TRAINING}
    found = federate(clients, out=tmp_path / "f", strategy="fedkegcn", own={"threads": 1}, **terms)
    assert found["mrr"] > 0
    first, *others = bases(tmp_path / "f")
    assert all(np.array_equal(first, other) for other in others)
    from veilgraph.files import read_arrays

    state = read_arrays(tmp_path / "f" / "server" / "state.safetensors")[0]
    assert state["table"].shape == (6, 64)  # two directions of three bases: all the server ever had
    mixes = [
        Run.open(tmp_path / "f" / "clients" / name).parameters.weights["encoder.layers.0.into.mix"].shape[0]
        for name in NAMES
    ]
    assert len(mixes) == 3  # one row per relation of one's own


def test_alone_nothing_is_shared(clients: Path, tmp_path: Path) -> None:
    terms = {"rounds": 2, "local_epochs": 1, "training": TRAINING}
    federate(clients, out=tmp_path / "f", strategy="kegcn-alone", own={"threads": 1}, **terms)
    first, *others = bases(tmp_path / "f")
    assert not any(np.array_equal(first, other) for other in others)


@pytest.mark.parametrize("transport", ["sorted", "sinkhorn"])
def test_transport_is_part_of_local_steps(clients: Path, tmp_path: Path, transport: str) -> None:
    training = {**TRAINING, "transport": transport, "transport_weight": 10.0}
    terms = {"strategy": "fedkegcn", "rounds": 2, "local_epochs": 1, "own": {"threads": 1}}
    federate(clients, out=tmp_path / "with", training=training, **terms)
    federate(clients, out=tmp_path / "without", training=TRAINING, **terms)
    assert not np.array_equal(bases(tmp_path / "with")[0], bases(tmp_path / "without")[0])


def test_labels_can_be_learnt_together(tmp_path: Path) -> None:
    from veilgraph.load import load, save

    rng = np.random.default_rng(0)
    for number in range(3):
        lines = [
            f"p{person}\tknows\tp{3 * other + person % 3}\n"
            for person in range(90)
            for other in rng.choice(30, 4, replace=False)
        ]
        (tmp_path / f"{number}.tsv").write_text("".join(lines))
        save(load(tmp_path / f"{number}.tsv"), tmp_path / "clients" / f"client{number}")
        labels = "".join(f"p{i}\tclub{i % 3}\n" for i in range(90))
        (tmp_path / "clients" / f"client{number}" / "labels.tsv").write_text(labels)
    training = {**TRAINING, "task": "labels", "encoder_layers": 2, "learning_rate": 0.02}
    found = federate(
        tmp_path / "clients",
        out=tmp_path / "f",
        strategy="fedkegcn",
        rounds=10,
        local_epochs=4,
        training=training,
        own={"threads": 1},
    )
    assert found["accuracy"] > 0.6  # a coin: 1/3
    assert all("accuracy" in one for one in found["clients"])


def test_clients_that_promise_something_cannot_take_part(clients: Path, tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="encoder"):
        federate(
            clients,
            out=tmp_path / "f",
            strategy="fedkegcn",
            rounds=1,
            training=TRAINING,
            own={"epsilon": 1.0, "delta": 1e-5},
        )
    with pytest.raises(ConfigError, match="encoder-bases"):
        federate(clients, out=tmp_path / "g", strategy="fedkegcn", rounds=1, training={"model": "distmult"})


def test_commands(clients: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "federate",
        "run",
        str(clients),
        "--out",
        str(tmp_path / "f"),
        "--strategy",
        "fedkegcn",
        "--model",
        "distmult",
    ]
    words += [
        "--rounds",
        "1",
        "--local-epochs",
        "1",
        "--dimension",
        "8",
        "--encoder",
        "kegcn",
        "--encoder-bases",
        "2",
    ]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["strategy"] == "fedkegcn"
    assert {"name", "mrr", "epsilon"} <= set(said["clients"][0])
