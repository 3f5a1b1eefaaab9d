"""Transport between matrices, against POT."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilgraph.models.gcn.transport import by_sinkhorn, by_sorting, sinkhorn_plan, transport

ot = pytest.importorskip("ot")


@pytest.fixture
def matrices() -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return (
        torch.randn(3, 6, 5, generator=rng, dtype=torch.float64),
        torch.randn(3, 6, 5, generator=rng, dtype=torch.float64) + 1,
    )


def test_sorting_is_exact(matrices: tuple[torch.Tensor, torch.Tensor]) -> None:
    a, b = matrices
    wanted = np.mean(
        [ot.emd2_1d(x.flatten().numpy(), y.flatten().numpy(), metric="sqeuclidean") for x, y in zip(a, b)]
    )
    assert float(by_sorting(a, b)) == pytest.approx(wanted, rel=1e-9)


def test_plans_are_those_of_the_oracle(matrices: tuple[torch.Tensor, torch.Tensor]) -> None:
    a, b = matrices
    cost = torch.cdist(a, b).square()
    entropy = 0.1 * cost.mean((1, 2), keepdim=True)
    plan = sinkhorn_plan(cost, entropy, rounds=2000)
    uniform = np.full(6, 1 / 6)
    for number in range(3):
        wanted = ot.sinkhorn(
            uniform,
            uniform,
            cost[number].numpy(),
            float(entropy[number]),
            method="sinkhorn_log",
            numItermax=20000,
            stopThr=1e-12,
        )
        np.testing.assert_allclose(plan[number].numpy(), wanted, atol=1e-6)


def test_entropic_distances_come_near_exact_ones(matrices: tuple[torch.Tensor, torch.Tensor]) -> None:
    a, b = matrices
    cost = torch.cdist(a, b).square().numpy()
    exact = np.mean([ot.emd2(np.full(6, 1 / 6), np.full(6, 1 / 6), one) for one in cost])
    assert float(by_sinkhorn(a, b, strength=0.01)) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize(("name", "pace"), [("sorted", 20), ("sinkhorn", 2)])
def test_gradients_bring_matrices_together(
    name: str, pace: float, matrices: tuple[torch.Tensor, torch.Tensor]
) -> None:
    a, b = matrices
    moved = a.clone().requires_grad_()
    before = float(transport(name)(a, b))
    for _ in range(50):
        (gradient,) = torch.autograd.grad(transport(name)(moved, b), moved)
        moved = (moved - pace * gradient).detach().requires_grad_()
    assert float(transport(name)(moved.detach(), b)) < 0.7 * before
    same = b.clone().requires_grad_()
    (still,) = torch.autograd.grad(transport(name)(same, b), same)
    assert bool(torch.isfinite(still).all())


def test_sorting_has_the_gradient_of_its_value(matrices: tuple[torch.Tensor, torch.Tensor]) -> None:
    a, b = matrices
    assert torch.autograd.gradcheck(lambda x: by_sorting(x, b), a.clone().requires_grad_())
