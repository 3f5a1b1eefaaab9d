"""A row for each entity, learnt by itself."""

from __future__ import annotations

from torch import Tensor

from veilgraph.models.parameters import Parameters
from veilgraph.train.batches import Batch, LabelBatch, TripleBatch
from veilgraph.train.gradients import RowGradient
from veilgraph.train.private.clip import ClippedSum, How, Into
from veilgraph.train.private.sums import clipped_sum
from veilgraph.train.rows.base import Made, Optimisers, Place, Rows


class TableRows(Rows):
    """What most trainings have."""

    def of(self, p: Parameters, batch: Batch | LabelBatch, place: Place) -> Made:
        return Made(p, batch)

    def pull(
        self, p: Parameters, optimisers: Optimisers, made: Made, gradient: RowGradient, rate: float
    ) -> None:
        optimisers["entities"].update(p.entities, gradient.ids, gradient.values, rate)

    def flush(self, p: Parameters) -> None:
        """Rows are what was learnt."""

    def clipped(
        self, how: How, p: Parameters, batch: TripleBatch, unit: Tensor | None, into: Into
    ) -> ClippedSum:
        return clipped_sum(how, p, batch, unit, into)
