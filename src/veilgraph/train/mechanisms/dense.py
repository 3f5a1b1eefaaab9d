"""dense: noise on every row at every step."""

from __future__ import annotations

from veilgraph.models.parameters import Parameters
from veilgraph.train.mechanisms.base import Mechanism, Optimisers, Step, private_tables


class Dense(Mechanism):
    """The Poisson-subsampled Gaussian mechanism as it is written; any optimiser, at the price of the whole table.

    Relation rows that, by public rules, no confidential statement can be about are no private parameters: no noise.
    """

    name = "dense"

    def release(self, p: Parameters, optimisers: Optimisers, step: Step) -> None:
        noise = self.measured(step)
        for name, table in private_tables(p, self.clip).items():
            ids = self.clip.rows if name == "relations" else None
            self.move(table, optimisers[name], getattr(step.total, name), noise, ids, step.rate)
