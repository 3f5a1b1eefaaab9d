"""Optimisers against their definitions, on some rows and on all."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from veilgraph.train import optim

NAMES = ("sgd", "adagrad", "row-adagrad", "adam")


def reference(name: str, row: Tensor, gradients: list[Tensor], rate: float) -> Tensor:
    """One row, one step after another."""
    row, squares, mean = row.clone().double(), torch.zeros(len(row)).double(), torch.zeros(len(row)).double()
    for step, gradient in enumerate((g.double() for g in gradients), 1):
        if name == "sgd":
            change = gradient
        elif name == "adagrad":
            squares += gradient**2
            change = gradient / (squares.sqrt() + 1e-10)
        elif name == "row-adagrad":
            squares += (gradient**2).mean()
            change = gradient / (squares.sqrt() + 1e-10)
        else:
            mean = 0.9 * mean + 0.1 * gradient
            squares = 0.999 * squares + 0.001 * gradient**2
            change = (mean / (1 - 0.9**step)) / ((squares / (1 - 0.999**step)).sqrt() + 1e-8)
        row = row - rate * change
    return row.float()


@pytest.mark.parametrize("name", NAMES)
def test_rows_move_as_defined_and_others_stay(name: str) -> None:
    torch.manual_seed(0)
    table = torch.randn(6, 5)
    start, given = table.clone(), {row: [] for row in range(6)}  # type: ignore[var-annotated]
    optimiser = optim.create(name, table)
    for rows in ([1, 4], [4], [0, 4, 5], [1]):
        gradient = torch.randn(len(rows), 5)
        optimiser.update(table, torch.tensor(rows), gradient, 0.1)
        for row, g in zip(rows, gradient):
            given[row].append(g)
    for row in range(6):
        torch.testing.assert_close(
            table[row], reference(name, start[row], given[row], 0.1), atol=1e-4, rtol=1e-4
        )
    assert torch.equal(table[2], start[2])


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_means_all_rows(name: str) -> None:
    table, same = torch.ones(4, 3), torch.ones(4, 3)
    gradient = torch.arange(12.0).view(4, 3) - 5
    optim.create(name, table).update(table, None, gradient, 0.1)
    optim.create(name, same).update(same, torch.arange(4), gradient, 0.1)
    assert torch.equal(table, same)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_do(name: str) -> None:
    table = torch.ones(3, 2)
    optim.create(name, table).update(table, torch.empty(0, dtype=torch.int64), torch.empty(0, 2), 0.1)
    assert torch.equal(table, torch.ones(3, 2))


def test_merge_sums_repeated_rows() -> None:
    rows, values = optim.merge(torch.tensor([4, 2, 4]), torch.tensor([[1.0], [5.0], [10.0]]))
    assert rows.tolist() == [2, 4]
    assert values.flatten().tolist() == [5.0, 11.0]
