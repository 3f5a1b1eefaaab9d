"""A model, loss, optimiser, reader, regulariser or export format cannot be added without being tested."""

from __future__ import annotations

import pytest

from tests.conformance import test_models, test_readers
from tests.run import test_export
from tests.train import test_losses, test_optim
from veilgraph import registry


@pytest.mark.parametrize("kind", registry.KINDS)
def test_names_that_are_read_off_files_are_those_there_are(kind: str) -> None:
    """A command's help shows them without importing anything; what is imported must be the same."""
    assert tuple(registry.available(kind)) == registry.names(kind)
    assert registry.names(kind), "nothing of this kind is found"
    for name, found in registry.available(kind).items():
        assert found.name == name
        assert found.__doc__


def test_every_component_is_tested() -> None:
    assert {name for name, _ in test_models.CASES} == set(registry.names("models"))
    assert set(test_readers.SOURCES) == set(registry.names("readers"))
    assert set(test_losses.NAMES) == set(registry.names("losses"))
    assert set(test_optim.NAMES) == set(registry.names("optimisers"))
    assert set(test_export.NAMES) == set(registry.names("formats"))
