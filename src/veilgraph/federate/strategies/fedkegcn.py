"""Fed-KE-GCN: the matrices that relations mix are averaged; mixtures, rows and everything else stay where they are.

A client's encoder makes its entity rows. Bases name nobody, but they are learnt from every statement: nothing is promised about them,
and a client that promises something cannot take part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from veilgraph.config import settle
from veilgraph.errors import ConfigError
from veilgraph.federate.strategies.base import Strategy
from veilgraph.models.parameters import Parameters
from veilgraph.train.rows.graph import BASES

if TYPE_CHECKING:
    from veilgraph.config import TrainConfig
    from veilgraph.load.graph import Graph


class FedKEGCN(Strategy):
    """Bases are shared."""

    name = "fedkegcn"
    shares_entities = False
    of_encoder = True

    def check(self, config: TrainConfig) -> None:
        if config.encoder is None or not config.encoder_bases:
            raise ConfigError(
                f"{self.name} shares an encoder's bases: say which, for example --encoder kegcn --encoder-bases 10."
            )

    def names(self, graph: Graph, config: TrainConfig) -> list[str]:
        encoder = settle(config).encoder
        count = 2 * encoder.layers * encoder.bases if encoder is not None else 0
        return [f"basis {number}" for number in range(count)]

    def table(self, p: Parameters) -> Tensor:
        return p.weights[BASES]

    def first_rows(self, config: TrainConfig, count: int, rng: np.random.Generator) -> np.ndarray:
        width = settle(config).scorer.dimension
        bound = (3 / width) ** 0.5
        return rng.uniform(-bound, bound, (count, width * width)).astype(np.float32)
