"""Every loss's coefficients are the derivatives of its value."""

from __future__ import annotations

import pytest
import torch

from tests import naive
from veilgraph import registry
from veilgraph.errors import UnknownNameError
from veilgraph.train import losses
from veilgraph.train.gradients import Objective

NAMES = ("margin", "softplus", "self-adversarial", "softmax")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("masked", [False, True])
def test_coefficients_are_derivatives(name: str, masked: bool) -> None:
    torch.manual_seed(0)
    positive, negative = torch.randn(5), torch.randn(5, 6) * 3
    if masked:
        negative[1, 2] = -torch.inf
    loss = losses.create(name, 1.5, 0.5, 100)
    found = loss.coefficients(positive.clone(), negative.clone())
    a, b = positive.clone().requires_grad_(), negative.clone().requires_grad_()
    values = torch.stack([naive.loss_of(Objective(loss), a[i], b[i]) for i in range(5)])
    values.sum().backward()
    torch.testing.assert_close(found.value, values.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.positive, a.grad, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.negative, torch.nan_to_num(b.grad), atol=1e-5, rtol=1e-5)


def test_sampled_softmax_over_all_others_is_the_full_softmax() -> None:
    scores = torch.randn(1, 9)
    found = losses.create("softmax", entities=10).coefficients(torch.tensor([0.3]), scores)
    full = torch.cat([torch.tensor([[0.3]]), scores], 1)
    torch.testing.assert_close(found.value, torch.logsumexp(full, 1) - 0.3)


def test_extreme_scores_stay_finite() -> None:
    for name in registry.names("losses"):
        found = losses.create(name, 1.0, 1.0, 50).coefficients(
            torch.tensor([1e4, -1e4]), torch.tensor([[1e4, -1e4], [-1e4, 1e4]])
        )
        assert all(part.isfinite().all() for part in found)


def test_unknown_loss_says_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Nearest: softmax"):
        losses.create("sofmax")
