"""mean: the mean of a text's token vectors."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from veilgraph.models.text.encoders.base import TextEncoder, Weights
from veilgraph.models.text.encoders.pooled import bags
from veilgraph.models.text.vectors import source


class Mean(TextEncoder):
    """The mean of its token vectors, of length one: no order, no layers."""

    name = "mean"

    def features(self, texts: Sequence[str], state: Weights) -> Tensor:
        tokens = source(self.vectors).tokens(texts, None)
        return functional.normalize(bags(tokens.table, tokens.ids, "mean"), dim=1)
