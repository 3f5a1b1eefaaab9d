"""FedR (Zhang et al. 2022): relation rows are averaged over the clients that hold them, entities stay where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from veilgraph.federate.strategies.base import Strategy
from veilgraph.models.parameters import Parameters

if TYPE_CHECKING:
    from veilgraph.config import TrainConfig
    from veilgraph.load.graph import Graph


class FedR(Strategy):
    """Relations are shared, each with the row for asking backwards where there is one."""

    name = "fedr"
    shares_entities = False

    def names(self, graph: Graph, config: TrainConfig) -> list[str]:
        forward = list(graph.relations)
        return (
            forward + [f"{name}\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT ONE}" for name in forward]
            if config.reciprocal
            else forward
        )

    def table(self, p: Parameters) -> Tensor:
        return p.relations
