"""Optimisers that touch only the rows they are given: a step costs what it changes, not the table.

``update(table, rows, gradient, rate)`` changes ``table[rows]`` (``rows`` distinct; None means the whole table).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from veilgraph import registry
from veilgraph.train import optim_kernels
from veilgraph.train.optim_kernels import Floats, Ints


class Optimiser(ABC):
    """The memory of one table's updates."""

    name: ClassVar[str]

    def __init__(self, table: Tensor) -> None:
        self.state: dict[str, Tensor] = self.start(table)

    @abstractmethod
    def start(self, table: Tensor) -> dict[str, Tensor]:
        """Fresh state tensors for a table; they are what a checkpoint stores."""

    @abstractmethod
    def run(self, table: Floats, rows: Ints, gradient: Floats, rate: np.float32) -> None:
        """Change ``table[rows]`` and the state of those rows, in place."""

    def update(self, table: Tensor, rows: Tensor | None, gradient: Tensor, rate: float) -> None:
        """Take one step on some rows."""
        ids = torch.arange(len(table)) if rows is None else rows
        self.run(table.numpy(), ids.numpy(), gradient.contiguous().numpy(), np.float32(rate))


class SGD(Optimiser):
    """rate · gradient"""

    name = "sgd"

    def start(self, table: Tensor) -> dict[str, Tensor]:
        return {}

    def run(self, table: Floats, rows: Ints, gradient: Floats, rate: np.float32) -> None:
        optim_kernels.sgd(table, rows, gradient, rate)


class Adagrad(Optimiser):
    """gradient / √(sum of squares so far), coordinate by coordinate"""

    name = "adagrad"

    def start(self, table: Tensor) -> dict[str, Tensor]:
        return {"squares": torch.zeros_like(table)}

    def run(self, table: Floats, rows: Ints, gradient: Floats, rate: np.float32) -> None:
        optim_kernels.adagrad(table, self.state["squares"].numpy(), rows, gradient, rate)


class RowAdagrad(Optimiser):
    """Adagrad with one number per row, the sum of its mean squares: the state is 1/dimension of the table"""

    name = "row-adagrad"

    def start(self, table: Tensor) -> dict[str, Tensor]:
        return {"squares": torch.zeros(len(table))}

    def run(self, table: Floats, rows: Ints, gradient: Floats, rate: np.float32) -> None:
        optim_kernels.row_adagrad(table, self.state["squares"].numpy(), rows, gradient, rate)


class Adam(Optimiser):
    """Adam whose moments move only for rows that are touched (bias corrected by each row's own count)"""

    name = "adam"

    def start(self, table: Tensor) -> dict[str, Tensor]:
        return {
            "mean": torch.zeros_like(table),
            "squares": torch.zeros_like(table),
            "count": torch.zeros(len(table), dtype=torch.int32),
        }

    def run(self, table: Floats, rows: Ints, gradient: Floats, rate: np.float32) -> None:
        state = (self.state[name].numpy() for name in ("mean", "squares", "count"))
        optim_kernels.adam(table, *state, rows, gradient, rate)


def create(name: str, table: Tensor) -> Optimiser:
    """An optimiser for one table."""
    found: Optimiser = registry.find("optimisers", name)(table)
    return found


def merge(ids: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct rows and their summed gradients. Example: rows (4, 2, 4) with (1, 5, 10) give (2, 4) with (5, 11)."""
    rows, inverse = torch.unique(ids, return_inverse=True)
    return rows, torch.zeros(len(rows), gradients.shape[1], dtype=gradients.dtype).index_add_(
        0, inverse, gradients
    )
