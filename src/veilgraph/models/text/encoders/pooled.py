"""pooled: the mean, the maximum and the minimum of a text's token vectors, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from veilgraph.models.text.encoders.base import TextEncoder, Weights
from veilgraph.models.text.vectors import source


class Pooled(TextEncoder):
    """Power means of token vectors (Rücklé et al. 2018, arXiv 1803.01400): what is common in a text, and what stands out in it."""

    name = "pooled"

    def features(self, texts: Sequence[str], state: Weights) -> Tensor:
        tokens = source(self.vectors).tokens(texts, None)
        parts = [bags(tokens.table, tokens.ids, "mean"), bags(tokens.table, tokens.ids, "max")]
        parts.append(-bags(-tokens.table, tokens.ids, "max"))
        return torch.cat([functional.normalize(part, dim=1) for part in parts], 1)


def bags(table: Tensor, ids: Sequence[Tensor], mode: str) -> Tensor:
    """``[texts, width]``: the mean or maximum of each text's rows; zeros where there is none."""
    flat = torch.cat([*ids, torch.empty(0, dtype=torch.int64)])
    count = torch.tensor([len(one) for one in ids], dtype=torch.int64)
    return functional.embedding_bag(flat, table, count.cumsum(0) - count, mode=mode)
