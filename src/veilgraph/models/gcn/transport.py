"""How far matrices are from other matrices, as clouds of numbers or of rows: optimal transport, differentiable, in little memory.

sorted     the numbers of a matrix as a distribution on a line: transport in one dimension is sorting, O(n log n)
sinkhorn   the rows of a matrix as points: entropic transport in the log domain, a rows × rows table for each pair of matrices

Both compare ``[n, rows, columns]`` matrices pair by pair and are means over the pairs; nothing is as large as all numbers squared.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from veilgraph import registry

ROUNDS = 100


def by_sorting(a: Tensor, b: Tensor) -> Tensor:
    """The squared 2-Wasserstein distance of the numbers: the mean squared difference of equal ranks."""
    ordered = (x.flatten(1).sort(1).values for x in (a, b))
    first, second = ordered
    return (first - second).square().mean(1).mean()


def by_sinkhorn(a: Tensor, b: Tensor, strength: float = 0.05) -> Tensor:
    """⟨plan, squared distances of rows⟩ with the entropic plan; ``strength`` is of the entropy beside the mean distance.

    The plan is found without derivatives and held fixed: by the envelope theorem the derivative of the entropic optimum is that of the
    cost under its plan.
    """
    cost = torch.cdist(a, b).square()
    with torch.no_grad():
        plan = sinkhorn_plan(cost, strength * cost.mean((1, 2), keepdim=True).clamp(min=1e-12), rounds=ROUNDS)
    return (plan * _squares(a, b)).sum((1, 2)).mean()


def sinkhorn_plan(cost: Tensor, entropy: Tensor, *, rounds: int) -> Tensor:
    """``[n, p, q]`` the entropic plan between uniform weights, by alternate scaling of logarithms."""
    kernel = -cost / entropy
    log_p, log_q = -math.log(cost.shape[1]), -math.log(cost.shape[2])
    left, right = cost.new_zeros(cost.shape[:2]), cost.new_zeros(cost.shape[0], cost.shape[2])
    for _ in range(rounds):
        left = log_p - torch.logsumexp(kernel + right.unsqueeze(1), 2)
        right = log_q - torch.logsumexp(kernel + left.unsqueeze(2), 1)
    return (kernel + left.unsqueeze(2) + right.unsqueeze(1)).exp()


def _squares(a: Tensor, b: Tensor) -> Tensor:
    """Squared distances of rows, smooth where rows coincide."""
    return (
        a.square().sum(2).unsqueeze(2) + b.square().sum(2).unsqueeze(1) - 2 * torch.bmm(a, b.transpose(1, 2))
    )


class Transport(ABC):
    """A distance between two clouds of matrices."""

    name: ClassVar[str]

    @staticmethod
    @abstractmethod
    def distance(a: Tensor, b: Tensor) -> Tensor:
        """The mean over pairs of matrices, differentiable."""


class Sorted(Transport):
    """Numbers of a matrix as a distribution on a line."""

    name = "sorted"

    @staticmethod
    def distance(a: Tensor, b: Tensor) -> Tensor:
        return by_sorting(a, b)


class Sinkhorn(Transport):
    """Rows of a matrix as points."""

    name = "sinkhorn"

    @staticmethod
    def distance(a: Tensor, b: Tensor) -> Tensor:
        return by_sinkhorn(a, b)


def transport(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The distance of that name."""
    found: Callable[[Tensor, Tensor], Tensor] = registry.find("transports", name).distance
    return found
