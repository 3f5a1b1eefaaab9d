"""dense: noise on every row at every step."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from veilgraph.models.parameters import Parameters
from veilgraph.train.optim import Optimiser
from veilgraph.train.private.clip import ClippedSum
from veilgraph.train.private.mechanisms.base import Mechanism, private_tables


class Dense(Mechanism):
    """The Poisson-subsampled Gaussian mechanism as it is written; any optimiser, at the price of the whole table."""

    name = "dense"

    def release(
        self,
        p: Parameters,
        optimisers: Mapping[str, Optimiser],
        total: ClippedSum,
        negatives: Tensor,
        rate: float,
    ) -> None:
        for name, table in private_tables(p, self.clip).items():
            optimisers[name].update(table, None, self.noisy_table(table, getattr(total, name)), rate)
