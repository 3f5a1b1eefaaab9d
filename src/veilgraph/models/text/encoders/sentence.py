"""sentence: a frozen sentence encoder of the BERT kind."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from veilgraph.models.text.encoders.base import TextEncoder, Weights
from veilgraph.models.text.vectors import source


class Sentence(TextEncoder):
    """One vector for the whole text, read in order: MiniLM (extra ``sentence``), or any local sentence-transformers or BERT folder."""

    name = "sentence"
    usual = "minilm"
    of_sentences = True

    def features(self, texts: Sequence[str], state: Weights) -> Tensor:
        return source(self.vectors).sentences(texts)
