"""What every strategy is: which rows of a client's tables are shared, and whether others' rows come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from torch import Tensor

from veilgraph import models, registry
from veilgraph.models.parameters import Parameters

if TYPE_CHECKING:
    from veilgraph.config import TrainConfig
    from veilgraph.load.graph import Graph


class Strategy(ABC):
    """Shared rows have names; clients that have a name in common have a row in common."""

    name: ClassVar[str]
    shares_entities: ClassVar[bool] = True
    aggregates: ClassVar[bool] = True  # or every client gets its own rows back
    of_encoder: ClassVar[bool] = False  # rows are an encoder's, which follows them anyway

    def check(self, config: TrainConfig) -> None:
        """Raise for settings under which nothing can be shared so."""

    @abstractmethod
    def names(self, graph: Graph, config: TrainConfig) -> list[str]:
        """Of the shared rows, in the order of the table."""

    @abstractmethod
    def table(self, p: Parameters) -> Tensor:
        """``[names, width]`` the shared rows themselves, to be read and written."""

    def first_rows(self, config: TrainConfig, count: int, rng: np.random.Generator) -> np.ndarray:
        """Where so many rows start."""
        model = models.scorer_of(config)
        drawn = model.initialise(*((count, 1) if self.shares_entities else (1, count)), rng)
        return np.asarray(drawn[0 if self.shares_entities else 1].numpy(), np.float32)


def strategy(name: str) -> Strategy:
    """The one of that name."""
    found: Strategy = registry.find("strategies", name)()
    return found
