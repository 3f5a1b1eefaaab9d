"""What every guarantee is given, and what it gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from torch import Tensor

from veilgraph import registry
from veilgraph.account.events import Event, is_private, non_private
from veilgraph.account.ledger import Ledger
from veilgraph.classify.config import ClassifyConfig
from veilgraph.errors import VerificationError
from veilgraph.layout import LEDGER
from veilgraph.load.folds import Folds
from veilgraph.load.labels import Labels
from veilgraph.noise.gauss import source
from veilgraph.noise.measure import Meter

CURATOR = "curator"


@dataclass(frozen=True)
class Task:
    """A graph, and whose labels are learnt from."""

    triples: np.ndarray
    secret: np.ndarray  # which of them are confidential
    nodes: int
    relations: int
    labels: Labels
    folds: Folds
    truth: np.ndarray  # [nodes, labels] float32, of all folds

    @property
    def unrestricted(self) -> np.ndarray:
        """Statements anybody may read."""
        return self.triples[~self.secret]

    @property
    def confidential(self) -> np.ndarray:
        """Those nobody may."""
        return self.triples[self.secret]


@dataclass(frozen=True)
class Outcome:
    """``scores`` ``[nodes, labels]``, and what may be released: ``tensors`` always, ``scores`` where ``open_scores``."""

    scores: np.ndarray
    tensors: Mapping[str, Tensor]
    open_scores: bool


@dataclass
class Book:
    """Where charges and released tensors are written before anything is made of them."""

    ledger: Ledger
    folder: Path
    meter: Meter

    @classmethod
    def open(cls, folder: Path, config: ClassifyConfig) -> Book:
        """The ledger of a folder, new or as it was left."""
        ledger = Ledger(folder / LEDGER)
        if config.insecure_noise_seed is not None:
            ledger.charge(non_private("the noise was drawn from a given seed"), "insecure noise")
        noise = source(secure=config.secure_noise, insecure_seed=config.insecure_noise_seed)
        return cls(ledger, folder, Meter(ledger, noise))

    @property
    def mark(self) -> dict[str, str]:
        """What is written beside a release, so that the ledger cannot be cut back behind it."""
        return {"ledger": self.ledger.mark}

    def check(self, facts: Mapping[str, str], path: Path) -> None:
        """Refuse a release whose charge is no longer on the ledger."""
        if "ledger" not in facts or not self.ledger.continues(facts["ledger"]):
            raise VerificationError(
                f"{path} was paid for by a ledger that is no longer there: what was spent is not known, and nothing more may be spent."
            )

    @property
    def spent(self) -> list[Event]:
        """What was charged before, as far as it has a price."""
        return [event for event in self.ledger.events if is_private(event)]


class Guarantee(ABC):
    """Learns labels without telling more than ε about one unit."""

    name: ClassVar[str]
    unit: ClassVar[str]  # in the words of a certificate
    mechanism: ClassVar[str]
    units: ClassVar[tuple[str, ...]]  # of a graph's marks that it protects
    words: ClassVar[str]  # who or what is protected, in a certificate: «whether … in the graph»
    words_before: ClassVar[str] = ""  # in certificates up to version 3, if they were others
    asked: ClassVar[str] = "a statement"  # what somebody who knows all else is not sure of
    reads: ClassVar[tuple[str, ...]]  # settings, beside those every guarantee has: others are refused
    public: ClassVar[tuple[str, ...]] = ("names of labels",)  # beside what always is
    protects_statements: ClassVar[bool] = True  # unmarked ones count as confidential

    @abstractmethod
    def learn(self, task: Task, config: ClassifyConfig, book: Book) -> Outcome:
        """Charge, read, and learn."""


def guarantee(name: str) -> Guarantee:
    """The one of that name."""
    found: Guarantee = registry.find("guarantees", name)()
    return found
