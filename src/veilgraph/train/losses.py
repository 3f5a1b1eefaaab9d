"""Losses as coefficients: each gives its value and, in closed form, its derivative on every score.

``positive[b]`` is the score of the true statement, ``negative[b, k]`` those of its corruptions (−inf where masked).
The engine multiplies the coefficients into the similarity's gradient, so no loss needs automatic differentiation —
and a private step can scale one example's coefficients before anything is summed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from veilgraph.errors import UnknownNameError


class Coefficients(NamedTuple):
    """The loss of each example and its derivatives on the scores."""

    value: Tensor  # [b]
    positive: Tensor  # [b]
    negative: Tensor  # [b, k]


@dataclass(frozen=True)
class Loss:
    """A loss with its numbers. ``entities`` is the size of the vocabulary the negatives are drawn from."""

    name: str
    margin: float = 1.0
    temperature: float = 1.0
    entities: int = 0

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise UnknownNameError("loss", self.name, NAMES)

    def coefficients(self, positive: Tensor, negative: Tensor) -> Coefficients:
        """Value and derivatives for a batch of scores ``[b]`` and ``[b, k]``."""
        return _FORMULAS[self.name](self, positive, negative)


def _margin(loss: Loss, positive: Tensor, negative: Tensor) -> Coefficients:
    """mean_k max(0, margin − positive + negative)"""
    k = negative.shape[1]
    gap = (negative - positive.unsqueeze(1)).add_(loss.margin)
    active = gap > 0
    on_negative = active.to(negative.dtype).div_(k)
    return Coefficients(gap.clamp_(min=0).sum(1) / k, -on_negative.sum(1), on_negative)


def _softplus(loss: Loss, positive: Tensor, negative: Tensor) -> Coefficients:
    """softplus(−positive) + mean_k softplus(negative)"""
    k = negative.shape[1]
    value = F.softplus(-positive) + F.softplus(negative).sum(1) / k
    return Coefficients(value, -torch.sigmoid(-positive), torch.sigmoid(negative).div_(k))


def _self_adversarial(loss: Loss, positive: Tensor, negative: Tensor) -> Coefficients:
    """−log σ(margin + positive) − Σ_k p_k log σ(−margin − negative), p = softmax(temperature · negative), held fixed."""
    p = torch.softmax(negative * loss.temperature, 1)
    if negative.shape[1] <= 2:
        p = p.nan_to_num_(0.0)
    shifted = negative + loss.margin
    value = F.softplus(-positive - loss.margin) + (p * F.softplus(shifted)).sum(1)
    return Coefficients(value, -torch.sigmoid(-positive - loss.margin), p.mul_(torch.sigmoid_(shifted)))


def _softmax(loss: Loss, positive: Tensor, negative: Tensor) -> Coefficients:
    """Sampled softmax: the k negatives stand for all entities, so each counts (entities − 1)/k times."""
    correction = math.log(max(loss.entities - 1, 1) / negative.shape[1]) if loss.entities else 0.0
    p = torch.softmax(negative, 1)
    # log Σ exp(negative) without another pass of exponentials: the largest p is exp(max − logsumexp)
    log_sum = negative.amax(1) - p.amax(1).log() + correction
    if (
        negative.shape[1] <= 2
    ):  # only then can all negatives be masked: such an example has nothing to be compared with
        p, log_sum = p.nan_to_num_(0.0), log_sum.nan_to_num(-math.inf)
    total = torch.logaddexp(positive, log_sum)
    on_negative = p.mul_((log_sum - total).exp_().unsqueeze(1))
    return Coefficients(total - positive, -(log_sum - total).exp(), on_negative)


_FORMULAS = {
    "margin": _margin,
    "softplus": _softplus,
    "self-adversarial": _self_adversarial,
    "softmax": _softmax,
}
NAMES = tuple(_FORMULAS)
