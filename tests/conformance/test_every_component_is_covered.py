"""A model, loss, optimiser, reader, regulariser or export format cannot be added without being tested."""

from __future__ import annotations

import pkgutil

import veilgraph.models
from tests.conformance import test_models, test_readers
from tests.train import test_losses, test_optim
from veilgraph import models
from veilgraph.load import READERS
from veilgraph.load.reader import Reader
from veilgraph.train import losses, optim


def test_every_model_file_holds_a_tested_model() -> None:
    files = {m.name for m in pkgutil.iter_modules(veilgraph.models.__path__)} - set(models._NOT_MODELS)
    assert {type_.__module__.rsplit(".", 1)[1] for type_ in models.available().values()} == files
    assert {name for name, _ in test_models.CASES} == set(models.names())


def test_every_reader_is_registered_and_tested() -> None:
    assert {type(r) for r in READERS} == set(Reader.__subclasses__())
    assert set(test_readers.SOURCES) == {r.name for r in READERS}


def test_every_loss_and_optimiser_is_tested() -> None:
    assert set(test_losses.NAMES) == set(losses.NAMES)
    assert set(test_optim.NAMES) == set(optim.OPTIMISERS)
