"""Small graphs every test may use, and real data where it is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.postgres import postgres, postgres_server
from veilgraph import machine
from veilgraph.load import Graph, Vocabulary, load, split

__all__ = ["postgres", "postgres_server"]
REPOSITORY = Path(__file__).parents[1]
DATA = Path(os.environ.get("VEILGRAPH_DATA", REPOSITORY.parent / "shared" / "datasets"))


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    machine.prepare(1)
    torch.set_grad_enabled(True)


@pytest.fixture(scope="session")
def hospital() -> Graph:
    """A small hospital, split."""
    return split(load("builtin:hospital", patients=200), valid=0.05, test=0.05)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real benchmark data."""
    if not DATA.is_dir():
        pytest.skip(f"benchmark data is not at hand ({DATA}); set VEILGRAPH_DATA")
    return DATA


def random_graph(entities: int = 20, relations: int = 4, statements: int = 90, seed: int = 0) -> Graph:
    """Random distinct statements in three splits."""
    rng = np.random.default_rng(seed)
    triples = np.unique(
        np.stack([rng.integers(entities, size=statements), rng.integers(relations, size=statements),
                  rng.integers(entities, size=statements)], 1), axis=0
    )  # fmt: skip
    triples = rng.permutation(triples)
    held = len(triples) // 6
    names = [f"e{i:03d}" for i in range(entities)]
    return Graph(
        Vocabulary(names),
        Vocabulary([f"r{i}" for i in range(relations)], "relation"),
        {"train": triples[2 * held :], "valid": triples[:held], "test": triples[held : 2 * held]},
    )
