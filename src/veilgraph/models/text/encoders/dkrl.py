"""dkrl: two convolutions over token vectors, learnt from statements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from veilgraph.models.text.encoders.base import PROJECTION, TextEncoder, Weights, linear
from veilgraph.models.text.vectors import source

TOKENS, POOL, WINDOW = 32, 4, 2  # as published


class Dkrl(TextEncoder):
    """Convolution, maximum over four tokens, convolution, mean (Xie et al. 2016), on at most 32 tokens."""

    name = "dkrl"
    layers = True

    def features(self, texts: Sequence[str], state: Weights) -> Tensor:
        """``[texts, 32, width]`` token vectors, zeros after the last one."""
        return source(self.vectors).tokens(texts, TOKENS).padded(TOKENS)[0]

    def start(self, features: Tensor, out: int, hidden: int, rng: np.random.Generator) -> dict[str, Tensor]:
        width, middle = features.shape[-1], hidden or out

        def normal(*shape: int) -> Tensor:
            scale = math.sqrt(1 / np.prod(shape[:-1]))
            return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32)).mul_(scale)

        return {
            "first": torch.cat([normal(WINDOW * width, middle), torch.zeros(1, middle)]),
            PROJECTION: torch.cat([normal(WINDOW * middle, out), torch.full((1, out), 0.3)]),
        }

    def rows(self, features: Tensor, weights: Weights) -> Tensor:
        found = torch.tanh(_windows(features.float(), weights["first"]))
        found = functional.max_pool1d(found.transpose(1, 2), POOL).transpose(1, 2)
        return _windows(found, weights[PROJECTION]).mean(1)


def _windows(tokens: Tensor, matrix: Tensor) -> Tensor:
    """A convolution as a matrix product: each token beside the next one."""
    ahead = functional.pad(tokens, (0, 0, 0, 1))[:, 1:]
    both = torch.cat([tokens, ahead], 2)
    return linear(both.flatten(0, 1), matrix).view(*both.shape[:2], -1)
