"""Attribute inference: what lists tell is found, what they do not tell is not, and sanitised lists tell less."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from tests.recommend.test_recommend import shop
from veilgraph import registry
from veilgraph.attack.attribute import attack, attribute, measure
from veilgraph.attack.attribute.attackers import rotate
from veilgraph.attack.attribute.knowledge import Knowledge
from veilgraph.errors import ConfigError, PrivacyError, UnknownNameError
from veilgraph.load import split
from veilgraph.mark import mark
from veilgraph.recommend.offers import Offers, scaled
from veilgraph.sanitise import sanitisers
from veilgraph.sanitise.people import Attribute
from veilgraph.train import train

pytest.importorskip("sklearn")

USERS, ITEMS = 240, 120


def people(told: float, kinds: int = 2, seed: int = 0) -> tuple[Offers, Attribute, Knowledge]:
    """Scores of many tastes, of which a share is told by the attribute."""
    rng = np.random.default_rng(seed)
    values = rng.choice(kinds, USERS, p=[0.7, *[0.3 / (kinds - 1)] * (kinds - 1)])
    tastes = rng.normal(size=(USERS, 6)) @ rng.normal(size=(6, ITEMS))
    scores = scaled(tastes + told * rng.normal(size=(kinds, ITEMS))[values])
    offers = Offers(np.arange(USERS), np.arange(ITEMS), scores, rng.random((USERS, ITEMS)) < 0.1)
    secret = Attribute("kind", tuple(f"kind/{i}" for i in range(kinds)), values)
    return offers, secret, Knowledge(np.zeros((ITEMS, 0)), sparse.csr_matrix((USERS, 0)))


@pytest.mark.parametrize("name", registry.available("attackers"))
def test_every_attacker_finds_what_lists_tell_and_nothing_else(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if registry.find("attackers", name).slow:  # the same in larger steps, with fewer parts
        monkeypatch.setitem(rotate.SETTINGS, "batch", 512)
        monkeypatch.setitem(rotate.SETTINGS, "epochs", 30)
        monkeypatch.setattr(sys.modules[attack.__module__], "FOLDS", 2)
    offers, secret, knows = people(told=3.0)
    found = attack(offers, secret, [], knows, attacker=name)
    assert found["balanced_accuracy"] > 0.75
    assert found["auc"] > 0.8
    if registry.find("attackers", name).slow:
        return
    offers, secret, knows = people(told=0.0)
    found = attack(offers, secret, [], knows, attacker=name)
    assert 0.38 < found["balanced_accuracy"] < 0.62  # four standard deviations
    low, high = found["interval"]
    assert low <= found["balanced_accuracy"] <= high
    assert found["targets"] == USERS


def test_values_that_are_many_and_unbalanced() -> None:
    offers, secret, knows = people(told=3.0, kinds=4)
    found = attack(offers, secret, [], knows, attacker="logistic")
    assert found["coin"] == 0.25
    assert found["majority"] > 0.6
    assert found["balanced_accuracy"] > 0.5
    unknown = Attribute(secret.name, secret.values, np.where(np.arange(USERS) < 40, -1, secret.of))
    assert attack(offers, unknown, [], knows, attacker="logistic")["targets"] == USERS - 40


def test_balanced_lists_tell_less_and_stay_good() -> None:
    """Against an attacker who learns from lists that were made the same way."""
    offers, secret, knows = people(told=1.5)
    before = attack(offers, secret, [], knows, attacker="logistic", repeat=True)
    after = attack(offers, secret, sanitisers("balanced:blend=0"), knows, attacker="logistic", repeat=True)
    random = attack(offers, secret, sanitisers("random:keep=5"), knows, attacker="logistic", repeat=True)
    assert before["q_u"] == 1
    assert after["q_u"] > 0.9 > random["q_u"]
    assert after["balanced_accuracy"] < before["balanced_accuracy"] - 0.1
    assert after["balanced_accuracy"] < random["balanced_accuracy"]


def test_history_tells_more_than_lists(tmp_path: Path) -> None:
    """Through a run: the recommender must not have read the attribute."""
    graph = split(shop(np.random.default_rng(1)), valid=0.1, test=0.1, mode="latest")
    settings = {"model": "distmult", "dimension": 8, "epochs": 10, "threads": 1}
    knowing = train(graph, out=tmp_path / "knowing", **settings)
    with pytest.raises(PrivacyError, match="has read is"):
        attribute(knowing, "is", graph=graph)
    graph = graph.with_marks(mark(graph, relations=["is"]))
    run = train(graph, out=tmp_path / "run", drop_confidential=True, **settings)
    found = {
        k: attribute(run, "is", graph=graph, knowledge=k, attacker="logistic") for k in ("lists", "history")
    }
    assert found["history"]["balanced_accuracy"] > 0.9
    assert found["lists"]["lists"] == "new items only"
    assert {"attribute", "attacker", "balanced_accuracy", "interval", "majority", "targets"} <= set(
        found["lists"]
    )
    with pytest.raises(ConfigError, match="knowledge is one of"):
        attribute(run, "is", graph=graph, knowledge="all")
    with pytest.raises(UnknownNameError, match="logistic"):
        attribute(run, "is", graph=graph, attacker="logistik")


def test_measures_by_hand() -> None:
    chances, values = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]]), np.array([0, 0, 0, 1])
    found = measure(chances, values)
    assert found["accuracy"] == 0.75
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["auc"] == pytest.approx(2 / 3)
