"""lazy: the noise of a row is drawn when the row is next read.

With plain SGD a row that is not read is moved by noise alone: −rate_s · z_s / expected at every step s, independent
Gaussians whose sum is one Gaussian with variance (σ·C/expected)² · Σ rate_s². So the noise of all missed steps can be
drawn at once, right before the row is read — and for all rows when anything leaves the trainer (``flush``). A row that
*is* moved by the batch gets this step's noise together with it, in one sum of float64 that is rounded once: a sum that
was rounded before its noise would differ between neighbours by more than its clip. What is released has the
distribution of ``dense``; a step costs what it reads. Step sizes must not depend on confidential data.
"""

from __future__ import annotations

import torch
from torch import Tensor

from veilgraph.models.parameters import Parameters
from veilgraph.train.private import kernels
from veilgraph.train.private.clip import Clip
from veilgraph.train.private.gauss import Noise
from veilgraph.train.private.mechanisms.base import Mechanism, Optimisers, Step, Terms, private_tables


class Lazy(Mechanism):
    """Dense noise, drawn late."""

    name = "lazy"
    optimisers = ("sgd",)

    def __init__(self, terms: Terms, clip: Clip, noise: Noise) -> None:
        super().__init__(terms, clip, noise)
        self.clock = 0.0  # Σ rate² so far
        self.seen: dict[str, Tensor] = {}  # its value when a row last got its noise

    def catch_up(self, p: Parameters, entities: Tensor | None, relations: Tensor | None) -> None:
        for name, table in private_tables(p, self.clip).items():
            seen = self.seen.setdefault(name, torch.zeros(len(table), dtype=torch.float64))
            asked = entities if name == "entities" else relations
            rows = torch.arange(len(table)) if asked is None else torch.unique(asked)
            late = self.clock - seen.index_select(0, rows)
            if asked is None:
                rows = rows[late > 0]
                late = late[late > 0]
            scale = late.clamp_(min=0).sqrt_().mul_(self.deviation / self.terms.expected)
            piece = max(1, (1 << 22) // table.shape[1])
            for start in range(0, len(rows), piece):
                part = slice(start, start + piece)
                drawn = self.noise.normal(len(rows[part]), table.shape[1])
                kernels.add_scaled_rows(table.numpy(), rows[part].numpy(), scale[part].numpy(), drawn)
            seen[rows] = self.clock

    def release(self, p: Parameters, optimisers: Optimisers, step: Step) -> None:
        for name, table in private_tables(p, self.clip).items():
            rows, seen = getattr(step.total, name), self.seen[name]
            if len(rows.ids):
                drawn = self.noise.normal(*rows.values.shape)
                kernels.move_rows(
                    table.numpy(),
                    rows.ids.numpy(),
                    rows.values.contiguous().numpy(),
                    drawn,
                    self.deviation,
                    -step.rate / self.terms.expected,
                )
                seen[rows.ids] = self.clock + step.rate**2
        self.clock += step.rate**2

    def flush(self, p: Parameters) -> None:
        self.catch_up(p, None, None)
