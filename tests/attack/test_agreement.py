"""Targets that agree with each other give members away, without any relation's row and without any truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilgraph.attack.federated.agreement import agreement
from veilgraph.attack.membership.curve import auc
from veilgraph.models import create
from veilgraph.models.base import Model

TARGETS, KINDS, WIDTH = 400, 8, 32
LINKED = ("transe", "transm", "rotate", "distmult", "complex", "quate", "rescal")


def _learnt(model: Model, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Heads, relations of every target, tails, kinds and who is a member: members' tails are near what the model makes of their heads."""
    rng = np.random.default_rng(seed)
    head = rng.normal(size=(TARGETS, WIDTH)).astype(np.float32)
    rows = rng.normal(size=(KINDS, model.relation_width)).astype(np.float32)
    kinds, member = rng.integers(0, KINDS, TARGETS), rng.random(TARGETS) < 0.5
    composed = model.compose(torch.from_numpy(head), torch.from_numpy(rows[kinds])).numpy()
    tail = np.where(member[:, None], composed, rng.normal(size=head.shape))
    return head, rows, (tail + rng.normal(size=head.shape)).astype(np.float32), kinds, member


@pytest.mark.parametrize("name", LINKED)
def test_members_are_found_without_the_relation(name: str) -> None:
    model = create(name, WIDTH)
    head, rows, tail, kinds, member = _learnt(model, 0)
    alone = auc(agreement(model, head, tail, kinds), member)
    assert alone > 0.85
    assert auc(agreement(model, head, tail, kinds, rows[kinds]), member) > alone - 0.05


@pytest.mark.parametrize("name", [*LINKED, "transh"])
def test_where_nothing_was_learnt_nothing_agrees(name: str) -> None:
    model = create(name, WIDTH)
    rng = np.random.default_rng(1)
    found = [
        auc(
            agreement(model, *rng.normal(size=(2, TARGETS, WIDTH)), rng.integers(0, KINDS, TARGETS)),
            rng.random(TARGETS) < 0.5,
        )
        for _ in range(20)
    ]
    assert abs(np.mean(found) - 0.5) < 0.03


def test_no_target_is_compared_with_itself() -> None:
    model = create("distmult", WIDTH)
    rng = np.random.default_rng(2)
    head, tail = rng.normal(size=(2, 3, WIDTH))
    np.testing.assert_allclose(agreement(model, head, tail, np.arange(3)), 0)
    assert not agreement(model, 0 * head, tail, np.zeros(3, int)).any()
