"""touched: noise only on the rows a batch touches, as in DPKGE. Not differentially private.

Which rows moved is visible in the result, and it says which entities the batch's statements were about. Kept because it
is published and because an audit must be able to catch it: its event is non-private and its ε infinite.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from veilgraph.account.events import Event, non_private
from veilgraph.models.parameters import Parameters
from veilgraph.train.optim import Optimiser
from veilgraph.train.private.clip import ClippedSum
from veilgraph.train.private.mechanisms.base import Mechanism, Terms, private_tables


class Touched(Mechanism):
    """As published, not differentially private."""

    name = "touched"
    guarantee = "as published, not differentially private"

    @classmethod
    def event(cls, terms: Terms) -> Event:
        return non_private("noise only on touched rows: which rows moved reveals the statements")

    def release(
        self,
        p: Parameters,
        optimisers: Mapping[str, Optimiser],
        total: ClippedSum,
        negatives: Tensor,
        rate: float,
    ) -> None:
        for name, table in private_tables(p, self.clip).items():
            rows = getattr(total, name)
            if rows is not None and rows.ids is not None:
                optimisers[name].update(table, rows.ids, self.noisy_rows(rows, rows.ids), rate)
