"""What every strategy is: which rows of a client's tables are shared, and whether others' rows come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from veilgraph.models.parameters import Parameters

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph


class Strategy(ABC):
    """Shared rows have names; clients that have a name in common have a row in common."""

    name: ClassVar[str]
    shares_entities: ClassVar[bool] = True
    aggregates: ClassVar[bool] = True  # or every client gets its own rows back

    @abstractmethod
    def names(self, graph: Graph, *, reciprocal: bool) -> list[str]:
        """Of the shared rows, in the order of the table."""

    @abstractmethod
    def table(self, p: Parameters) -> Tensor:
        """``[names, width]`` the shared rows themselves, to be read and written."""
