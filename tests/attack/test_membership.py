"""Membership: an overfitted run betrays its statements, a private one does not; the numbers are what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veilgraph.attack.membership import membership
from veilgraph.attack.membership.curve import measure
from veilgraph.errors import InputError
from veilgraph.load import Graph
from veilgraph.mark import mark
from veilgraph.train import train


def test_measures_by_hand() -> None:
    found = measure(np.array([3.0, 2.0, 1.0, 2.0]), np.array([True, True, False, False]), resamples=20)
    assert found["auc"] == pytest.approx(0.875)
    rng = np.random.default_rng(0)
    member = rng.random(4000) < 0.5
    coin = measure(rng.random(4000), member)
    low, high = coin["auc_interval"]
    assert low < 0.5 < high
    assert coin["tpr@fpr=0.01"] < 0.03
    perfect = measure(member.astype(float), member, resamples=20)
    assert perfect["auc"] == 1.0
    assert perfect["tpr@fpr=0.001"] == 1.0


def test_overfitted_run_betrays_and_private_run_does_not(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, everything=True))
    plain = train(
        graph, out=tmp_path / "plain", model="distmult", dimension=64, epochs=60, validate_every=0,
        regulariser="none", dropout=0, threads=1,
    )  # fmt: skip
    private = train(
        graph,
        out=tmp_path / "private",
        model="distmult",
        dimension=16,
        epsilon=0.5,
        private_steps=20,
        epochs=1,
        threads=1,
    )
    bad, good = membership(plain, graph=graph), membership(private, graph=graph)
    assert bad["auc"] > 0.8
    assert good["auc_interval"][0] < 0.56
    assert good["auc"] < 0.6
    assert bad["members"] == bad["non_members"] > 100
    assert (bad["epsilon"], good["guarantee"]) == (None, "dp")


def test_shadows_decide_by_likelihood_ratio(hospital: Graph, tmp_path: Path) -> None:
    run = train(
        hospital, out=tmp_path / "run", model="distmult", dimension=16, epochs=25, validate_every=0, regulariser="none",
        dropout=0, threads=1,
    )  # fmt: skip
    found = membership(run, graph=hospital, shadows=4, count=150)
    assert found["attacks"]["likelihood-ratio"]["auc"] > 0.6


def test_needs_real_non_members(hospital: Graph, tmp_path: Path) -> None:
    alone = hospital.with_splits({"train": hospital.train})
    run = train(alone, out=tmp_path / "run", model="distmult", dimension=8, epochs=1, threads=1)
    with pytest.raises(InputError, match="real non-members"):
        membership(run, graph=alone)
