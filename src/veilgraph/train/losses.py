"""Losses as coefficients: each gives its value and, in closed form, its derivative on every score.

``positive[b]`` is the score of the true statement, ``negative[b, k]`` those of its corruptions (−inf where masked).
The engine multiplies the coefficients into the similarity's gradient, so no loss needs automatic differentiation —
and a private step can scale one example's coefficients before anything is summed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from veilgraph import registry


class Coefficients(NamedTuple):
    """The loss of each example and its derivatives on the scores."""

    value: Tensor  # [b]
    positive: Tensor  # [b]
    negative: Tensor  # [b, k]


@dataclass(frozen=True)
class Loss(ABC):
    """A loss with its numbers. ``entities`` is the size of the vocabulary the negatives are drawn from."""

    name: ClassVar[str]
    margin: float = 1.0
    temperature: float = 1.0
    entities: int = 0

    @abstractmethod
    def coefficients(self, positive: Tensor, negative: Tensor) -> Coefficients:
        """Value and derivatives for a batch of scores ``[b]`` and ``[b, k]``."""


def create(name: str, margin: float = 1.0, temperature: float = 1.0, entities: int = 0) -> Loss:
    """The loss of that name."""
    found: Loss = registry.find("losses", name)(margin, temperature, entities)
    return found


@dataclass(frozen=True)
class Margin(Loss):
    """mean_k max(0, margin − positive + negative)"""

    name: ClassVar[str] = "margin"

    def coefficients(self, positive: Tensor, negative: Tensor) -> Coefficients:
        k = negative.shape[1]
        gap = (negative - positive.unsqueeze(1)).add_(self.margin)
        active = gap > 0
        on_negative = active.to(negative.dtype).div_(k)
        return Coefficients(gap.clamp_(min=0).sum(1) / k, -on_negative.sum(1), on_negative)


@dataclass(frozen=True)
class Softplus(Loss):
    """softplus(−positive) + mean_k softplus(negative)"""

    name: ClassVar[str] = "softplus"

    def coefficients(self, positive: Tensor, negative: Tensor) -> Coefficients:
        k = negative.shape[1]
        value = F.softplus(-positive) + F.softplus(negative).sum(1) / k
        return Coefficients(value, -torch.sigmoid(-positive), torch.sigmoid(negative).div_(k))


@dataclass(frozen=True)
class SelfAdversarial(Loss):
    """−log σ(margin + positive) − Σ_k p_k log σ(−margin − negative), p = softmax(temperature · negative), held fixed."""

    name: ClassVar[str] = "self-adversarial"

    def coefficients(self, positive: Tensor, negative: Tensor) -> Coefficients:
        p = torch.softmax(negative * self.temperature, 1)
        if negative.shape[1] <= 2:
            p = p.nan_to_num_(0.0)
        shifted = negative + self.margin
        value = F.softplus(-positive - self.margin) + (p * F.softplus(shifted)).sum(1)
        return Coefficients(value, -torch.sigmoid(-positive - self.margin), p.mul_(torch.sigmoid_(shifted)))


@dataclass(frozen=True)
class Softmax(Loss):
    """Sampled softmax: the k negatives stand for all entities, so each counts (entities − 1)/k times."""

    name: ClassVar[str] = "softmax"

    def coefficients(self, positive: Tensor, negative: Tensor) -> Coefficients:
        correction = math.log(max(self.entities - 1, 1) / negative.shape[1]) if self.entities else 0.0
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
