"""What every encoder of texts is: frozen numbers for each text, and perhaps layers of its own that statements teach."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

Weights = Mapping[str, Tensor]
PROJECTION, HIDDEN = "projection", "hidden"


class TextEncoder(ABC):
    """``features`` are frozen: a function of the text, of published vectors, and of what ``fit`` found in (public) texts alone.

    ``rows`` is what is trained on top of them: by default a linear layer, or two with a rectifier between them.
    """

    name: ClassVar[str]
    usual: ClassVar[str] = "wordllama"  # where its vectors come from, if nobody says
    layers: ClassVar[bool] = False  # has layers of its own that statements teach: no private training
    of_sentences: ClassVar[bool] = False  # needs a source that reads whole sentences

    def __init__(self, vectors: str | None = None) -> None:
        self.vectors = vectors or self.usual

    def fit(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """What is learnt from texts alone, before any statement is read; most encoders need nothing."""
        return {}

    @abstractmethod
    def features(self, texts: Sequence[str], state: Weights) -> Tensor:
        """``[texts, width]``, or ``[texts, tokens, width]`` for encoders with layers; the same for the same text, whatever is beside it."""

    def start(self, features: Tensor, out: int, hidden: int, rng: np.random.Generator) -> dict[str, Tensor]:
        """What is trained, before it is; a bias is the last row of every matrix."""
        width = features.shape[-1]
        if not hidden:
            return {PROJECTION: projection_of(features, out, rng)}
        first = torch.zeros(width + 1, hidden)
        first[:-1] = _normal(rng, width, hidden, math.sqrt(2 / width))
        second = torch.zeros(hidden + 1, out)
        second[:-1] = _normal(rng, hidden, out, math.sqrt(0.5 / hidden))
        return {HIDDEN: first, PROJECTION: second}

    def rows(self, features: Tensor, weights: Weights) -> Tensor:
        """``[texts, out]``, differentiable."""
        if HIDDEN in weights:
            features = torch.relu(linear(features, weights[HIDDEN]))
        return linear(features, weights[PROJECTION])


def linear(rows: Tensor, matrix: Tensor) -> Tensor:
    """``[n, width]`` times ``[width + 1, out]``, the last row being a bias."""
    return torch.addmm(matrix[-1], rows, matrix[:-1])


def projection_of(features: Tensor, out: int, rng: np.random.Generator) -> Tensor:
    """Principal directions of the features, so that near texts start near each other; what is more than they have is random.

    Public: a function of texts. Rows of it have entries of about 0.3, and a bias that all share.
    """
    width = features.shape[1]
    matrix = torch.zeros(width + 1, out)
    middle = features - features.mean(0)
    _, _, directions = torch.linalg.svd(middle.T @ middle)
    found = directions[: min(out, width)].T
    scale = (middle @ found).std().clamp(min=1e-6) if len(features) > 1 else torch.ones(())
    matrix[:-1, : found.shape[1]] = 0.3 * found / scale
    if out > width:
        matrix[:-1, width:] = 0.3 * _normal(rng, width, out - width, 1 / math.sqrt(width)) / scale
    matrix[-1] = 0.3
    return matrix


def _normal(rng: np.random.Generator, rows: int, columns: int, scale: float) -> Tensor:
    return torch.from_numpy(rng.standard_normal((rows, columns), dtype=np.float32)).mul_(scale)
