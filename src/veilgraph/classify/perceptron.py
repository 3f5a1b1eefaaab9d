"""A softmax or sigmoid on rows of features, with or without a layer between: trained as it is, or by noisy clipped gradients.

The norm of an example's gradient is known from what goes in and what comes back at each matrix, so no example's own gradient is
ever made: a step is a few matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

SAFE = 1 + 1e-4  # norms are computed in single precision: clipped a little harder than asked


@dataclass
class Perceptron:
    """``[n, features]`` → ``[n, labels]``; the last row of a matrix is its bias."""

    matrices: list[Tensor]
    several: bool

    @classmethod
    def new(cls, features: int, labels: int, *, between: int, several: bool, seed: int) -> Perceptron:
        """Random, with a layer of ``between`` numbers (0: none)."""
        torch.manual_seed(seed)
        widths = [features, *([between] if between else []), labels]
        made = [torch.cat([torch.randn(a, b) / math.sqrt(a), torch.zeros(1, b)]) for a, b in pairwise(widths)]
        made[-1] = torch.zeros_like(made[-1])
        return cls(made, several)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """To be written down."""
        return {f"matrix{number}": matrix for number, matrix in enumerate(self.matrices)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """As it was written down."""
        for number, matrix in enumerate(self.matrices):
            matrix.copy_(tensors[f"matrix{number}"])

    def scores(self, rows: Tensor) -> Tensor:
        """``[n, labels]`` before the softmax."""
        return self._layers(rows)[-1]

    def chances(self, rows: Tensor) -> Tensor:
        """``[n, labels]`` after it."""
        with torch.no_grad():
            scores = self.scores(rows)
            return torch.sigmoid(scores) if self.several else torch.softmax(scores, 1)

    def _layers(self, rows: Tensor) -> list[Tensor]:
        """What goes into each matrix, and at last the scores."""
        out = [rows]
        for number, matrix in enumerate(self.matrices):
            if number:
                out[-1] = functional.relu(out[-1])
            out.append(out[-1] @ matrix[:-1] + matrix[-1])
        return out

    def gradients(self, rows: Tensor, truth: Tensor, clip: float | None = None) -> list[Tensor]:
        """The sum of the examples' gradients, each clipped to the norm ``clip``, if given."""
        layers = self._layers(rows)
        back = [torch.sigmoid(layers[-1]) if self.several else torch.softmax(layers[-1], 1)]
        total = truth if self.several else truth / truth.sum(1, keepdim=True).clamp(min=1)
        back[0] = back[0] - total
        for number in range(len(self.matrices) - 1, 0, -1):
            back.insert(0, (back[0] @ self.matrices[number][:-1].T) * (layers[number] > 0))
        weight = torch.ones(len(rows))
        if clip is not None:
            squares = [
                (into.square().sum(1) + 1) * out.square().sum(1) for into, out in zip(layers[:-1], back)
            ]
            norm = torch.stack(squares).sum(0).sqrt() * SAFE
            weight = (clip / norm.clamp(min=1e-30)).clamp(max=1)
        exact = (
            torch.float64 if clip is not None else torch.float32
        )  # sums of many must not drift past their bound
        kept = [
            (into.to(exact), (out * weight.unsqueeze(1)).to(exact)) for into, out in zip(layers[:-1], back)
        ]
        return [torch.cat([into.T @ out, out.sum(0, keepdim=True)]) for into, out in kept]


class Adam:
    """Steps that depend on gradients alone: where those are noisy, nothing else is read."""

    def __init__(self, matrices: list[Tensor], rate: float) -> None:
        self.parameters = [matrix.requires_grad_() for matrix in matrices]
        self.inner = torch.optim.Adam(self.parameters, lr=rate)

    def step(self, gradients: list[Tensor]) -> None:
        """Along these."""
        for parameter, gradient in zip(self.parameters, gradients):
            parameter.grad = gradient
        self.inner.step()


def standardised(rows: np.ndarray) -> Tensor:
    """Every column with mean zero and deviation one: for features that may be looked at as a whole."""
    mean, deviation = rows.mean(0), rows.std(0)
    return torch.from_numpy(((rows - mean) / np.where(deviation > 1e-9, deviation, 1)).astype(np.float32))


def fit(
    rows: Tensor,
    truth: Tensor,
    *,
    several: bool,
    between: int,
    epochs: int,
    rate: float,
    decay: float,
    dropout: float,
    seed: int,
) -> Perceptron:
    """Trained without noise, on all examples at once: for features and labels that may be read freely."""
    found = Perceptron.new(rows.shape[1], truth.shape[1], between=between, several=several, seed=seed)
    with torch.no_grad():
        optimiser = Adam(found.matrices, rate)
        for _ in range(epochs):
            kept = (torch.rand_like(rows) >= dropout) / (1 - dropout)
            gradients = found.gradients(rows * kept, truth)
            steps = [g / len(rows) + decay * matrix for g, matrix in zip(gradients, found.matrices)]
            optimiser.step(steps)
    return found
