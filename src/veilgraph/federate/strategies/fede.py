"""FedE (Chen et al. 2021): entity rows are averaged over the clients that hold them, relations stay where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from veilgraph.federate.strategies.base import Strategy
from veilgraph.models.parameters import Parameters

if TYPE_CHECKING:
    from veilgraph.config import TrainConfig
    from veilgraph.load.graph import Graph


class FedE(Strategy):
    """Entities are shared."""

    name = "fede"

    def names(self, graph: Graph, config: TrainConfig) -> list[str]:
        return list(graph.entities)

    def table(self, p: Parameters) -> Tensor:
        return p.entities
