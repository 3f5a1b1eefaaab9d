"""Membership: an overfitted run betrays its statements, a private one does not; the numbers are what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import random_graph
from veilgraph.attack.membership import membership
from veilgraph.attack.membership.curve import measure
from veilgraph.attack.membership.pool import APART, Pool, Surroundings, matched
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
    assert low <= 0.5 <= high
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


@pytest.mark.parametrize(
    "marks", [{"relations": ["has*", "takes"]}, {"everything": True}, {"random_share": 0.5}]
)
def test_a_control_is_a_coin(marks: dict[str, Any], hospital: Graph, tmp_path: Path) -> None:
    """Members are told from matched non-members by nobody who did not read them."""
    graph = hospital.with_marks(mark(hospital, **marks))
    run = train(graph, out=tmp_path / "run", model="distmult", dimension=16, epochs=20, threads=1)
    found = membership(run, graph=graph)
    low, high = found["control_interval"]
    assert abs(found["control"] - 0.5) <= high - low  # four deviations: 95 % would fail once in twenty
    assert low <= found["control"] <= high
    assert found["interval"] == found["auc_interval"]
    assert all({"control", "control_interval"} <= own.keys() for own in found["attacks"].values())


def test_what_a_split_leaves_out_is_seen_by_a_control_and_matched_away() -> None:
    """Held out are statements whose ends nothing else links, about people hardly known: without matching anybody could tell."""
    rng = np.random.default_rng(0)
    known = rng.integers(0, 100, (3000, 2))  # everybody knows many …
    rows = np.column_stack([known[:, 0], rng.integers(0, 2, 3000), known[:, 1]])
    rows = np.unique(rows[np.isin(rows[:, 0], range(0, 100))], axis=0)
    pair = rows[:, 0] * 1000 + rows[:, 2]
    linked = np.isin(
        pair, pair[np.unique(pair, return_index=True)[1]][np.unique(pair, return_counts=True)[1] > 1]
    )
    degree = np.bincount(rows[:, [0, 2]].ravel(), minlength=100)
    few = (degree[rows[:, 0]] + degree[rows[:, 2]] < np.median(degree) * 2) & ~linked
    held = few & (rng.random(len(rows)) < 0.5)
    graph = random_graph(entities=100, relations=2, statements=10).with_splits(
        {"train": rows[~held], "test": rows[held]}
    )
    pools = {
        "any": Pool.of(rows[~held][rng.permutation((~held).sum())[: held.sum()]], rows[held]),
        "matched": matched(graph, 1000, rng),
    }
    around = Surroundings(graph)
    seen = {}
    for name, pool in pools.items():
        ends = around.ends(pool.statements, np.ones(len(graph.train), bool))
        score = ends.sum(1) + 5 * around.linked(pool.statements)  # somebody who never saw one of them
        seen[name] = measure(score, pool.member)
    assert seen["any"]["auc_interval"][0] > 0.7
    low, high = seen["matched"]["auc_interval"]
    assert low <= 0.5 <= high
    assert pools["matched"].member.sum() > 0.5 * held.sum()


def test_matched_members_are_like_their_partners(hospital: Graph) -> None:
    graph = hospital.with_marks(mark(hospital, relations=["has*", "takes"]))
    pool = matched(graph, 500, np.random.default_rng(0))
    members, others = pool.statements[pool.member], pool.statements[~pool.member]
    assert (members[:, 1] == others[:, 1]).all()
    assert np.isin(graph.keys(members), graph.keys(graph.train[graph.secret("train")])).all()
    assert not np.isin(graph.keys(others), graph.keys(graph.train)).any()
    around = Surroundings(graph)
    apart = np.abs(
        around.ends(members, graph.secret("train")) - around.ends(others, graph.secret("train"))
    ).sum(1)
    assert apart.max() <= APART
    assert (around.linked(members) == around.linked(others)).all()


def test_a_coin_withholds_from_a_twin(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, everything=True))
    settings = {
        "model": "distmult",
        "dimension": 32,
        "epochs": 40,
        "validate_every": 0,
        "regulariser": "none",
        "dropout": 0,
    }
    run = train(graph, out=tmp_path / "run", threads=1, **settings)
    found = membership(run, graph=graph, withhold=True, count=300)
    assert found["non_members_are"] == "withheld"
    assert found["members"] + found["non_members"] == 600
    assert 240 < found["members"] < 360  # six deviations of a fair coin
    assert found["auc"] > 0.7
    low, high = found["control_interval"]
    assert low <= 0.5 <= high


def test_needs_real_non_members(hospital: Graph, tmp_path: Path) -> None:
    alone = hospital.with_splits({"train": hospital.train})
    run = train(alone, out=tmp_path / "run", model="distmult", dimension=8, epochs=1, threads=1)
    with pytest.raises(InputError, match="real non-members"):
        membership(run, graph=alone)


def test_where_a_unit_is_a_person_people_are_decided_about(hospital: Graph, tmp_path: Path) -> None:
    """A coin withholds whole people, whose scores are added up; single statements would look safer than they are."""
    from veilgraph.attack.membership.pool import withheld

    graph = hospital.with_marks(mark(hospital, relations=["has*", "takes"], unit="head", per_unit=20))
    whole, pool = withheld(graph, 1000, np.random.default_rng(0))
    gone = set(graph.train[graph.secret("train")][:, 0]) - set(whole.train[whole.secret("train")][:, 0])
    assert gone == set(pool.statements[~pool.member][:, 0])
    assert not gone & set(pool.statements[pool.member][:, 0])
    assert len(pool.units) == len(np.unique(pool.statements[:, 0])) < len(pool.statements)
    assert (pool.units[pool.unit] == pool.member).all()
    run = train(graph, out=tmp_path / "run", model="distmult", dimension=32, epochs=40, threads=1)
    with pytest.raises(InputError, match=r"the unit is head.*--withhold"):
        membership(run, graph=graph)
    found = membership(run, graph=graph, withhold=True)
    assert found["decides_about"] == "head"
    assert found["members"] + found["non_members"] == len(pool.units)
    assert found["auc"] > 0.7


def test_a_private_run_has_a_twin(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_marks(mark(hospital, relations=["has*", "takes"]))
    run = train(graph, out=tmp_path / "run", model="marginals", epsilon=2.0, threads=1)
    found = membership(run, graph=graph, withhold=True, count=100)
    assert (found["epsilon"], found["guarantee"]) == (run.epsilon, "dp")
    assert 0 < found["members"] <= 200
