"""Every sanitiser: lists of the right size, nothing twice, nothing that is not allowed, the same for the same seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veilgraph import registry
from veilgraph.errors import ConfigError, PrivacyError, UnknownNameError, UsageError
from veilgraph.sanitise import Eraser, Request, epsilon, sanitise, sanitisers
from veilgraph.sanitise.exponential import Exponential

USERS, ITEMS, K = 60, 80, 10


def request(*, repeat: bool, seed: int = 0) -> Request:
    rng = np.random.default_rng(seed)
    scores = rng.random((USERS, ITEMS)).astype(np.float32)
    taken = rng.random((USERS, ITEMS)) < 0.3
    allowed = np.ones_like(taken) if repeat else ~taken
    values = rng.integers(2, size=USERS)
    eraser = Eraser.fit(scores, values)
    return Request(scores, allowed, K, taken.sum(0), eraser, public_items=True, repeat=repeat)


@pytest.mark.parametrize("repeat", [True, False])
@pytest.mark.parametrize(
    "name", [*registry.names("sanitisers"), "shuffle,random:keep=3", "balanced:blend=0.2,shuffle"]
)
def test_lists_are_lists(name: str, repeat: bool) -> None:
    asked = request(repeat=repeat)
    chain = sanitisers(name)
    assert all(one.promise and type(one).__doc__ for one in chain)
    if name == "exponential" and not repeat:
        with pytest.raises(PrivacyError, match="tells what the user has"):
            sanitise(asked, chain)
        return
    before = asked.lists.copy()
    lists = sanitise(asked, chain, seed=1)
    assert lists.shape == (USERS, K)
    assert all(len(set(row)) == K for row in lists.tolist())
    assert np.take_along_axis(asked.allowed, lists, 1).all()
    np.testing.assert_array_equal(lists, sanitise(asked, chain, seed=1))
    np.testing.assert_array_equal(asked.lists, before)


@pytest.mark.parametrize("name", registry.names("sanitisers"))
def test_whether_chance_has_a_part_is_said(name: str) -> None:
    asked, chain = request(repeat=True), sanitisers(name)
    several = {sanitise(asked, chain, seed=seed).tobytes() for seed in range(5)}
    assert (len(several) > 1) == chain[0].draws


def test_random_keeps_and_replaces() -> None:
    asked = request(repeat=True)
    lists = sanitise(asked, sanitisers("random:keep=4"), seed=0)
    np.testing.assert_array_equal(lists[:, :4], asked.lists[:, :4])
    assert not (lists[:, 4:, None] == asked.lists[:, None, :]).any()


def test_everybody_gets_the_same() -> None:
    """A list that depends on nobody tells nothing, where known items may repeat; else it tells what is left out."""
    repeated, new = (sanitise(request(repeat=repeat), sanitisers("everybody")) for repeat in (True, False))
    assert len(np.unique(repeated, axis=0)) == 1
    assert len(np.unique(new, axis=0)) > 1


def test_popular_replacements_are_popular() -> None:
    asked = request(repeat=True)
    drawn = [
        sanitise(asked, sanitisers(f"{name}:keep=0"), seed=s)
        for name in ("random", "popular")
        for s in range(20)
    ]
    random, popular = (
        np.mean([asked.popularity[lists].mean() for lists in part]) for part in (drawn[:20], drawn[20:])
    )
    assert popular > random + 0.3


def test_exponential_draws_as_it_says() -> None:
    """One item of three: chances are exp(ε/2 · score), as drawn; fails by chance once in a million."""
    from scipy import stats

    scores = np.tile(np.array([[0.0, 0.5, 1.0]], np.float32), (20_000, 1))
    asked = Request(scores, np.ones_like(scores, bool), 1, np.ones(3), public_items=True, repeat=True)
    drawn = sanitise(asked, [Exponential(2.0)])[:, 0]
    assert (drawn != sanitise(asked, [Exponential(2.0)])[:, 0]).any()  # chance is fresh, not seeded
    chance = np.exp(2.0 / 2 * scores[0].astype(float))
    chance /= chance.sum()
    assert stats.chisquare(np.bincount(drawn, minlength=3), chance * len(drawn)).pvalue > 1e-6
    assert Exponential(1.0).ceiling == pytest.approx(0.7310585786)


def test_exponential_keeps_its_word_for_the_worst_pair_of_people() -> None:
    """One loves the items of a list and nothing else, the other everything else: by the chances of every order, exactly."""
    from itertools import permutations

    for size, budget in ((1, 2.0), (2, 1.0), (3, 4.0)):
        items, wanted = 30, list(range(size))
        logs = []
        for liked in (np.arange(items) < size, np.arange(items) >= size):
            weight = np.exp(Exponential(budget).slope(size) * liked.astype(float))
            chance = 0.0
            for order in permutations(wanted):
                left, product = weight.sum(), 1.0
                for item in order:
                    product *= weight[item] / left
                    left -= weight[item]
                chance += product
            logs.append(np.log(chance))
        assert 0.6 * budget < abs(logs[0] - logs[1]) <= budget  # and not far below: nothing is wasted


def test_an_epsilon_is_refused_by_what_was_asked_for_and_not_by_what_people_have() -> None:
    """Who has nothing would get a list of new items, who has something an error: that tells which of them it is."""
    asked = replace(request(repeat=True), repeat=False)  # nobody here has anything to leave out
    assert asked.allowed.all()
    with pytest.raises(PrivacyError, match="may repeat known items"):
        sanitise(asked, sanitisers("exponential:budget=1"))


@pytest.mark.parametrize("name", registry.names("sanitisers"))
def test_an_epsilon_needs_a_public_list_of_items(name: str) -> None:
    asked, chain = replace(request(repeat=True), public_items=False), sanitisers(name)
    if epsilon(chain) is None:
        assert sanitise(asked, chain, seed=0).shape == (USERS, K)
    else:
        with pytest.raises(PrivacyError, match="--catalogue"):
            sanitise(asked, chain)


def test_replacements_that_read_histories_have_no_epsilon() -> None:
    assert epsilon(sanitisers("exponential:budget=1,random:keep=2")) == 1
    assert epsilon(sanitisers("exponential:budget=1,popular:keep=2")) is None
    assert epsilon(sanitisers("balanced,exponential:budget=1")) == 1
    assert epsilon(sanitisers("exponential:budget=1,balanced")) is None


def test_erased_scores_cannot_be_read_linearly() -> None:
    """The best linear reading of the attribute, fitted on the very people, finds nothing; without erasing it finds all."""
    rng = np.random.default_rng(0)
    values = rng.integers(3, size=400)
    scores = rng.normal(size=(400, 30)) + np.eye(3)[values] @ rng.normal(size=(3, 30))
    told = np.eye(3)[values]
    for given, low, high in ((scores, 0.3, 1.0), (Eraser.fit(scores, values)(scores), 0.0, 0.01)):
        centred = np.column_stack([given - given.mean(0), np.ones(400)])
        fitted = centred @ np.linalg.lstsq(centred, told, rcond=None)[0]
        share = ((fitted - told.mean(0)) ** 2).sum() / ((told - told.mean(0)) ** 2).sum()
        assert low <= share <= high


def test_wrong_words_are_explained() -> None:
    with pytest.raises(UnknownNameError, match="balanced"):
        sanitisers("balancd")
    with pytest.raises(ConfigError, match="no setting"):
        sanitisers("random:kep=3")
    with pytest.raises(ConfigError, match="must be a number"):
        sanitisers("random:keep=many")
    with pytest.raises(ConfigError, match="between 0 and"):
        sanitise(request(repeat=True), sanitisers("random:keep=11"))
    asked = request(repeat=True)
    with pytest.raises(UsageError, match="--attribute"):
        sanitise(Request(asked.scores, asked.allowed, K, asked.popularity), sanitisers("balanced"))
