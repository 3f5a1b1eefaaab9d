"""A score that depends on the relation and the candidate alone: how often an entity is a tail, or a head, of a relation.

``Prior`` adds such a row to the scores of any model. A small table is kept whole; of a large one only the cells that
stand out are kept (by row, sorted), the others count as zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from veilgraph.models import score_kernels


@dataclass(frozen=True)
class Prior:
    """Rows 0 … R−1 are about tails, rows R … 2R−1 about heads. Either ``table`` or (``starts``, ``ids``, ``values``)."""

    relations: int
    entities: int
    table: Tensor | None = None  # [2R, E]
    starts: Tensor | None = None  # [2R + 1]
    ids: Tensor | None = None  # [n], sorted within a row
    values: Tensor | None = None  # [n]

    def rows(self, relation: Tensor, side: str) -> Tensor:
        """The rows of questions about tails or heads; relation ids may be those of reciprocal rows."""
        return relation % self.relations + (self.relations if side == "head" else 0)

    def add(self, scores: Tensor, relation: Tensor, side: str) -> None:
        """Add to the scores of every entity, in place: ``[q, E]``."""
        rows = self.rows(relation, side)
        if self.table is not None:
            scores += self.table.index_select(0, rows)
            return
        assert self.starts is not None
        assert self.ids is not None
        assert self.values is not None
        score_kernels.add_sparse_rows(
            scores.numpy(), rows.numpy(), self.starts.numpy(), self.ids.numpy(), self.values.numpy()
        )

    def gather(self, relation: Tensor, side: str, ids: Tensor) -> Tensor:
        """The values of some candidates: relation ``[b]``, ids ``[b, k]`` → ``[b, k]``."""
        rows = self.rows(relation, side)
        if self.table is not None:
            return self.table.view(-1)[rows.unsqueeze(1) * self.entities + ids]
        assert self.starts is not None
        assert self.ids is not None
        assert self.values is not None
        if not len(self.ids):
            return torch.zeros(ids.shape)
        owner = torch.repeat_interleave(torch.arange(len(self.starts) - 1), self.starts.diff())
        keys, asked = owner * self.entities + self.ids, rows.unsqueeze(1) * self.entities + ids
        place = torch.searchsorted(keys, asked.contiguous()).clamp_(max=len(keys) - 1)
        return torch.where(keys[place] == asked, self.values[place], torch.zeros(()))

    def times(self, factor: Tensor) -> Prior:
        """The same with each row multiplied by a factor ``[2R]``."""
        if self.table is not None:
            return Prior(self.relations, self.entities, self.table * factor.unsqueeze(1))
        assert self.starts is not None
        assert self.values is not None
        by_cell = torch.repeat_interleave(factor, self.starts.diff())
        return Prior(self.relations, self.entities, None, self.starts, self.ids, self.values * by_cell)

    def widened(self, more: int) -> Prior:
        """The same for so many entities more, of which nothing was ever counted."""
        entities = self.entities + more
        if self.table is None:
            return Prior(self.relations, entities, None, self.starts, self.ids, self.values)
        least = self.table.amin(1, keepdim=True).expand(-1, more)
        return Prior(self.relations, entities, torch.cat([self.table, least], 1))

    def tensors(self) -> dict[str, Tensor]:
        """What a file holds."""
        named = {"table": self.table, "starts": self.starts, "ids": self.ids, "values": self.values}
        return {
            "shape": torch.tensor([self.relations, self.entities]),
            **{name: tensor for name, tensor in named.items() if tensor is not None},
        }

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Prior:
        """From what a file holds."""
        relations, entities = (int(n) for n in tensors["shape"])
        found = cls(relations, entities, *(tensors.get(k) for k in ("table", "starts", "ids", "values")))
        if not found._fits():
            raise ValueError("its tables do not fit together")
        return found

    def _fits(self) -> bool:
        """Whether every place that is written to is there: compiled code does not look."""
        if self.relations < 0 or self.entities < 0:
            return False
        if self.table is not None:
            shape = (2 * self.relations, self.entities)
            return self.table.dtype == torch.float32 and tuple(self.table.shape) == shape
        starts, ids, values = self.starts, self.ids, self.values
        if starts is None or ids is None or values is None or values.dtype != torch.float32:
            return False
        if any(one.dim() != 1 or one.dtype not in (torch.int32, torch.int64) for one in (starts, ids)):
            return False
        if len(starts) != 2 * self.relations + 1 or ids.shape != values.shape:
            return False
        rising = int(starts[0]) == 0 and int(starts[-1]) == len(ids) and bool((starts.diff() >= 0).all())
        return rising and (not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < self.entities))
