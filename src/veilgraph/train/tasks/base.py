"""What every task is: batches, and what a batch pulls at rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from veilgraph.models.parameters import Parameters
from veilgraph.train.gradients import Gradients


class Task(ABC):
    """What is learnt from."""

    @property
    @abstractmethod
    def positives(self) -> float:
        """What is read in an epoch, for the speed that is shown."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Batches in one epoch."""

    @abstractmethod
    def batches(self, epoch: int) -> Iterator[Any]:
        """The batches of one epoch: the same for the same seed and epoch, whatever came before."""

    @abstractmethod
    def gradients(self, p: Parameters, batch: Any) -> Gradients:
        """What a batch pulls at its rows, at relations, and at weights that are the task's or the scorer's."""

    def start(self, width: int, rng: np.random.Generator) -> dict[str, Tensor]:
        """Weights of its own before the first step."""
        return {}

    def figures(self, p: Parameters) -> dict[str, float] | None:
        """How good what was learnt is, where the task itself says so. For the curator."""
        return None
