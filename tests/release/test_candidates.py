"""Cells: the same as a loop over all of them, and numbered without gaps."""

from __future__ import annotations

import numpy as np
import pytest

from veilgraph.release.candidates import Candidates, intensities, seen_roles


@pytest.mark.parametrize("seed", range(5))
def test_candidates_are_the_cells_that_are_expected_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    relations, entities, threshold = 3, 12, 0.4
    intensity = rng.exponential(size=(2 * relations, entities)) * (
        rng.random((2 * relations, entities)) < 0.7
    )
    sizes = rng.integers(1, 9, relations).astype(float)
    found = Candidates.at_least(intensity, sizes, threshold)
    naive = {
        (h, r, t)
        for r in range(relations)
        for h in range(entities)
        for t in range(entities)
        if intensity[r, h] > 0
        and intensity[relations + r, t] > 0
        and intensity[r, h] * intensity[relations + r, t] / sizes[r] >= threshold
    }
    statements = found.statements(np.arange(len(found)))
    assert set(map(tuple, statements.tolist())) == naive
    assert len(statements) == len(naive)
    np.testing.assert_array_equal(found.cells(statements), np.arange(len(found)))
    every = np.stack(np.meshgrid(range(entities), range(relations), range(entities)), -1).reshape(-1, 3)
    for statement, cell in zip(every.tolist(), found.cells(every).tolist()):
        assert (cell >= 0) == (tuple(statement) in naive)


def test_nothing_is_expected_where_nothing_was_seen() -> None:
    none = Candidates.at_least(np.zeros((2, 4)), np.ones(1), 0.1)
    assert len(none) == 0
    assert none.cells(np.array([[0, 0, 1]])).tolist() == [-1]
    assert none.statements(np.empty(0, np.int64)).shape == (0, 3)


def test_what_is_left_to_the_unseen_is_as_much_as_was_seen_once() -> None:
    """Good and Turing: and it goes to entities whose other roles are alike."""
    statements = np.array([[0, 0, 5], [1, 0, 5], [2, 0, 6], [0, 1, 7], [1, 1, 7], [3, 1, 7], [4, 2, 7]])
    counts = seen_roles(statements, 8, 3)
    assert counts.sum() == 2 * len(statements)
    found = intensities(counts)
    np.testing.assert_array_equal(found[counts > 0], counts[counts > 0])
    assert found[0][counts[0] == 0].sum() == pytest.approx(3)  # heads 0, 1 and 2 were seen once
    assert found[0, 3] > found[0, 7]  # 3 has the role that 0 and 1 have too
