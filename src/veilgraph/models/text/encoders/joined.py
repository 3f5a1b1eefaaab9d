"""joined: a sentence encoder's vector beside pooled token vectors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from veilgraph.models.text.encoders.base import TextEncoder, Weights
from veilgraph.models.text.encoders.pooled import Pooled
from veilgraph.models.text.encoders.sentence import Sentence


class Joined(TextEncoder):
    """What a text means as a whole, and which words are in it: ``sentence`` and ``pooled`` (of wordllama) side by side."""

    name = "joined"
    usual = "minilm"
    of_sentences = True

    def features(self, texts: Sequence[str], state: Weights) -> Tensor:
        return torch.cat([Sentence(self.vectors).features(texts, {}), Pooled().features(texts, {})], 1)
