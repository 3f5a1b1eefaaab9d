"""Graphs of a few clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilgraph.federate.divide import divide
from veilgraph.load import Graph, load, save, split


@pytest.fixture(scope="session")
def hospital() -> Graph:
    """A very small one: these tests are about messages."""
    return split(load("builtin:hospital", patients=60), valid=0.05, test=0.05)


@pytest.fixture(scope="session")
def clients(hospital: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clients")
    for name, graph in divide(hospital, 3).items():
        save(graph, folder / name)
    return folder
