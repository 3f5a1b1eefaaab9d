"""lazy: a row is moved when it is next read.

With plain SGD a row is moved by −rate_s · (sum_s + z_s) / expected at every step s. The z_s are Gaussians, independent
of each other and of the sums, so those of all steps since the row was last read are one Gaussian with variance
Σ (σ_s·C · rate_s/expected)², drawn at once, right before the row is read again — and for all rows when anything
leaves the trainer (``flush``); σ_s is the noise that step s was measured with. The sums wait with them, in
float64, and both are added and rounded once: a sum that was rounded to the table's float32 before its noise would differ
between neighbours by more than its clip. What is released has the distribution of ``dense``; a step costs one draw for
every row it reads. Step sizes and shares must not depend on confidential data.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from veilgraph.account.prices import StepTerms
from veilgraph.models.parameters import Parameters
from veilgraph.noise.measure import Meter
from veilgraph.train.mechanisms.base import Mechanism, Optimisers, Step, private_tables
from veilgraph.train.private import clip_kernels
from veilgraph.train.private.clip import Clip, Into, distinct


class Lazy(Mechanism):
    """Noise on every row, drawn when the row is next read: as dense, at the price of the batch; SGD."""

    name = "lazy"
    optimisers = ("sgd",)
    shrinks = False

    def __init__(self, terms: StepTerms, clip: Clip, meter: Meter) -> None:
        super().__init__(terms, clip, meter)
        self.owed = meter.owed()  # the variance so far of the noise that every row is due
        self.seen: dict[str, np.ndarray] = {}  # its value when a row was last moved
        self.sums: dict[str, np.ndarray] = {}  # what waits for it (memory only where rows were read)

    def catch_up(self, p: Parameters, entities: Tensor | None, relations: Tensor | None) -> None:
        for name, table in private_tables(p, self.clip).items():
            seen, sums = self._waiting(name, table)
            asked = entities if name == "entities" else relations
            rows = np.flatnonzero(seen < self.owed.variance) if asked is None else distinct(asked)[0].numpy()
            piece = max(1, (1 << 22) // table.shape[1])
            for start in range(0, len(rows), piece):
                part = rows[start : start + piece]
                drawn = self.owed.standard(len(part), table.shape[1])
                clip_kernels.settle(table.numpy(), sums, seen, part, self.owed.variance, drawn)

    def into(self, p: Parameters, rate: float) -> Into:
        tables = private_tables(p, self.clip)
        entities, relations = (
            self._waiting(name, tables[name])[1] if name in tables else None
            for name in ("entities", "relations")
        )
        return Into(entities, relations, -rate / self.terms.expected)

    def release(self, p: Parameters, optimisers: Optimisers, step: Step) -> None:
        self.owed.add(self.measured(step), step.rate / self.terms.expected)  # (the sum waits already)

    def _waiting(self, name: str, table: Tensor) -> tuple[np.ndarray, np.ndarray]:
        if name not in self.seen:
            self.seen[name] = np.zeros(len(table))
            self.sums[name] = np.zeros(table.shape)
        return self.seen[name], self.sums[name]

    def flush(self, p: Parameters) -> None:
        self.catch_up(p, None, None)
