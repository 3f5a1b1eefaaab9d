"""Lists of items: what is in them, how good they are, and simple recommenders beside."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from veilgraph.cli import main
from veilgraph.errors import ConfigError, InputError, PrivacyError, UnknownNameError
from veilgraph.load import Graph, Vocabulary, save, split
from veilgraph.mark import mark
from veilgraph.recommend import judge, readable, recommend
from veilgraph.recommend.baselines import BASELINES
from veilgraph.recommend.measures import kept_score, quality
from veilgraph.recommend.offers import best_columns, scaled
from veilgraph.run.run import Run
from veilgraph.sanitise.lists import sanitised
from veilgraph.train import train

USERS, ITEMS = 80, 60


def items_of(run: Run) -> str:
    """The public list of all items, in a file."""
    file = run.folder.parent / "items.txt"
    file.write_text("".join(f"item/{i:02d}\n" for i in range(ITEMS)), encoding="utf-8")
    return str(file)


def shop(rng: np.random.Generator) -> Graph:
    """Two kinds of people, each with its own half of the items; a kind is an attribute."""
    kind = rng.integers(2, size=USERS)
    names = sorted(
        [f"user/{i:02d}" for i in range(USERS)]
        + [f"item/{i:02d}" for i in range(ITEMS)]
        + ["kind/0", "kind/1"]
    )
    at = {name: i for i, name in enumerate(names)}
    rows = []
    for user in range(USERS):
        own = rng.permutation(ITEMS // 2)[:15] + kind[user] * (ITEMS // 2)
        rows += [(at[f"user/{user:02d}"], 1, at[f"item/{item:02d}"]) for item in own]
        rows.append((at[f"user/{user:02d}"], 0, at[f"kind/{kind[user]}"]))
    relations = Vocabulary(["is", "took"], "relation")
    return Graph(Vocabulary(names), relations, {"train": np.array(rows, np.int32)})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("shop")
    graph = split(shop(np.random.default_rng(0)), valid=0.1, test=0.2, mode="latest")
    save(graph.with_marks(mark(graph, relations=["is"])), folder / "graph")
    return train(
        folder / "graph",
        out=folder / "run",
        model="distmult",
        dimension=16,
        epochs=30,
        threads=1,
        drop_confidential=True,
    )


def test_nobody_is_offered_what_they_have(run: Run) -> None:
    graph = run.graph()
    for user in ("user/03", "user/40"):
        has = {graph.entities[t] for h, r, t in graph.triples if graph.entities[h] == user and r == 1}
        found = recommend(run, user, top=12)
        assert [row["rank"] for row in found] == list(range(1, 13))
        assert has.isdisjoint(row["item"] for row in found)
        assert [row["score"] for row in found] == sorted((row["score"] for row in found), reverse=True)
        assert not has.isdisjoint(row["item"] for row in recommend(run, user, top=12, known=True))
        assert len(recommend(run, user, top=1000)) == ITEMS - len(has)
    with pytest.raises(UnknownNameError):
        recommend(run, "user/999")
    with pytest.raises(InputError, match="nothing to go by"):
        recommend(run, "kind/0")


def test_lists_are_judged_beside_simple_ones(run: Run) -> None:
    rows = {row["recommender"]: row for row in judge(run, top=5)}
    assert set(rows) == {"distmult", *BASELINES}
    assert all(0 <= row[key] <= 1 for row in rows.values() for key in ("hit", "recall", "ndcg", "coverage"))
    for name in (
        "distmult",
        "matrix factorisation",
        "item ridge",
    ):  # they know the kinds, popularity does not
        assert rows[name]["recall"] > 1.1 * rows["popular items"]["recall"]


def test_measures_equal_a_loop() -> None:
    rng = np.random.default_rng(0)
    later, lists = rng.random((30, 20)) < 0.2, np.array([rng.permutation(20)[:6] for _ in range(30)])
    later[0] = False
    hits, recalls, gains = [], [], []
    for user in range(1, 30):
        if not later[user].any():
            continue
        right = [bool(later[user, item]) for item in lists[user]]
        hits.append(any(right))
        recalls.append(sum(right) / later[user].sum())
        ideal = sum(1 / np.log2(i + 2) for i in range(min(6, later[user].sum())))
        gains.append(sum(1 / np.log2(i + 2) for i, one in enumerate(right) if one) / ideal)
    found = quality(lists, later)
    assert found["hit"] == pytest.approx(np.mean(hits))
    assert found["recall"] == pytest.approx(np.mean(recalls))
    assert found["ndcg"] == pytest.approx(np.mean(gains))
    assert found["coverage"] == len(set(lists.ravel().tolist())) / 20
    scores = scaled(rng.random((30, 20)))
    best = best_columns(scores, 6)
    assert (kept_score(scores, lists, best) <= 1).all()
    assert (kept_score(scores, best, best) == 1).all()


def test_ties_and_sizes() -> None:
    assert best_columns(np.array([[1.0, 2.0, 2.0, 0.0]]), 3).tolist() == [[1, 2, 0]]
    with pytest.raises(ConfigError, match="between 1 and 4"):
        best_columns(np.zeros((1, 4)), 5)


def test_nothing_to_judge_is_said(hospital: Graph, tmp_path: Path) -> None:
    graph = hospital.with_splits({"train": hospital.train})
    made = train(graph, out=tmp_path / "run", model="distmult", dimension=8, epochs=1, threads=1)
    with pytest.raises(InputError, match="--split latest"):
        judge(made, graph=graph)


def test_lists_learn_from_people_who_told(run: Run) -> None:
    """An attribute that is marked for everybody may be learnt from only if somebody says so."""
    with pytest.raises(PrivacyError, match="--everyone-told"):
        sanitised(run, "balanced", attribute="is", top=5)
    found = sanitised(run, "balanced", attribute="is", top=5, everyone_told=True)
    assert len(found["lists"]) == USERS
    assert all(len(set(items)) == 5 for items in found["lists"].values())
    assert found["epsilon"] is None
    words, terms = "exponential:budget=3", {"top": 5, "repeat": True, "listed": items_of(run)}
    assert sanitised(run, words, **terms)["epsilon"] == 3
    assert sanitised(run, words, **terms, seed=1)["epsilon"] is None


def test_an_item_that_one_person_has_does_not_vanish_with_him(run: Run) -> None:
    """Lists with an ε may have the same items for neighbours: without a public list of them there is no ε."""
    from veilgraph.recommend import Shelf
    from veilgraph.sanitise import sanitisers
    from veilgraph.sanitise.lists import decided_from

    graph = run.graph()
    with pytest.raises(PrivacyError, match="--catalogue"):
        sanitised(run, "exponential:budget=3", top=5, repeat=True)
    only = int(graph.train[graph.train[:, 1] == 1][0, 2])
    train_ = graph.train[(graph.train[:, 2] != only)]
    owner = np.array([[int(graph.entities.id("user/05")), 1, only]], np.int32)
    with_him = graph.with_splits({**graph.splits, "train": np.concatenate([train_, owner])})
    without = graph.with_splits({**graph.splits, "train": train_})
    for listed, same in ((None, False), (items_of(run), True)):
        items = [Shelf.of(run, one, listed=listed).items.tolist() for one in (with_him, without)]
        assert (items[0] == items[1]) is same
    shelf = Shelf.of(run, graph, listed=items_of(run))
    assert len(shelf.items) == ITEMS
    assert "took" in decided_from(shelf, sanitisers("exponential"), None)[0]
    assert decided_from(shelf, sanitisers("random"), None) == []


def test_how_names_begin_is_no_public_list(tmp_path: Path) -> None:
    """The names of a file of interactions are what somebody took: an item of one person goes when that person leaves it."""
    from veilgraph.recommend import Shelf

    rows = [(f"u{u}", f"i{(3 * u + i) % 12:02d}") for u in range(12) for i in range(4)]
    items = []
    for name, own in (("with", [*rows, ("u7", "rare")]), ("without", rows)):
        file = tmp_path / f"{name}.csv"
        file.write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in own), encoding="utf-8")
        run = train(f"interactions:{file}", out=tmp_path / name, model="distmult", epochs=1, threads=1)
        items.append(Shelf.of(run, run.graph(), listed="item/").items.tolist())
        with pytest.raises(PrivacyError, match=r"--catalogue items\.txt"):
            sanitised(run, "exponential:budget=1", top=3, repeat=True, listed="item/")
        assert sanitised(run, "random:keep=1", top=3, repeat=True, listed="item/")["epsilon"] is None
    assert len(items[0]) == len(items[1]) + 1


def test_a_catalogue_is_a_file_or_how_names_begin(run: Run, tmp_path: Path) -> None:
    from veilgraph.recommend.catalogue import catalogue

    names = run.entities
    (tmp_path / "items.txt").write_text("item/07\n\nitem/03\nitem/07\n", encoding="utf-8")
    assert [names[int(i)] for i in catalogue(names, str(tmp_path / "items.txt"))] == ["item/03", "item/07"]
    assert len(catalogue(names, "item/0, kind/")) == 12
    (tmp_path / "more.txt").write_text("item/07\nitem/999\n", encoding="utf-8")
    (tmp_path / "none.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    for words, said in (
        (str(tmp_path / "more.txt"), "item/999"),
        (str(tmp_path / "none.txt"), "no name at all"),
        (str(tmp_path / "bytes.txt"), "cannot be read"),
        ("absent/", "begins with absent/"),
        (" , ", "begins with nothing"),
    ):
        with pytest.raises(InputError, match=said):
            catalogue(names, words)


def test_where_something_is_promised_lists_are_made_from_what_is_open(tmp_path: Path) -> None:
    """A confidential history neither removes items from lists nor is asked for."""
    graph = split(shop(np.random.default_rng(2)), valid=0.1, test=0.1, mode="latest")
    graph = graph.with_marks(mark(graph, random_share=0.5))
    made = train(
        graph,
        out=tmp_path / "run",
        model="distmult",
        dimension=8,
        epochs=3,
        threads=1,
        drop_confidential=True,
    )
    less = graph.with_splits({name: array[~graph.secret(name)] for name, array in graph.splits.items()})
    assert readable(made, graph).fingerprint == less.fingerprint
    assert sanitised(made, "shuffle", graph=graph, seed=0)["lists"].keys() == {
        graph.entities[int(h)] for h, r, _ in less.train if r == 1
    }


def test_the_command_line_attacks_and_sanitises(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    words = [
        "attack",
        "attribute",
        str(run.folder),
        "--attribute",
        "is",
        "--attacker",
        "naive bayes",
        "--top",
        "5",
    ]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"attribute", "attacker", "balanced_accuracy", "interval", "majority", "targets"} <= set(found)
    assert main(words) == 0
    assert "naive bayes" in capsys.readouterr().out
    assert main(["attack", "attribute", str(run.folder)]) == 2
    assert main(["sanitise", str(run.folder), "--with", "balanced", "--attribute", "is", "--json"]) == 3
    assert main(["recommend", str(run.folder), "--user", "user/03", "--top", "2", "--json"]) == 0
    assert [row["rank"] for row in json.loads(capsys.readouterr().out)] == [1, 2]


def test_scores_that_are_not_numbers_are_refused(run: Run) -> None:
    from veilgraph.recommend import Shelf

    shelf = Shelf.of(run, run.graph())
    for wrong in (np.nan, np.inf, -np.inf):
        shelf.blocks[0][0, 3] = wrong
        with pytest.raises(InputError, match="not numbers"):
            shelf.part(np.array([0, 1]))
    assert np.isfinite(run.parameters.entities.numpy()).all()


def test_scores_of_few_and_of_many_users_are_the_same(run: Run) -> None:
    """One by one, in blocks on several cores, and by the scorer of all entities."""
    from veilgraph.rank.scoring import score_all
    from veilgraph.recommend import Shelf

    shelf = Shelf.of(run, run.graph())
    together = shelf.part(np.arange(20)).scores
    for place in (0, 7, 19):
        np.testing.assert_allclose(shelf.part(np.array([place])).scores[0], together[place], atol=1e-5)
    users = torch.from_numpy(shelf.users[:20].astype(np.int64))
    every = score_all(
        run.model,
        run.parameters,
        users,
        torch.full_like(users, shelf.relation),
        side="tail",
        reciprocal=bool(run.config.reciprocal),
    ).numpy()[:, shelf.items]
    np.testing.assert_allclose(scaled(every), together, atol=1e-5)


def test_the_best_of_many_columns_equal_a_sort() -> None:
    rng = np.random.default_rng(0)
    for width in (50, 3000, 5001):
        scores = rng.integers(40, size=(7, width)).astype(np.float32)  # many are equal
        scores[2] = -np.inf
        scores[2, 5:17] = 1
        for top in (1, 10):
            wanted = np.argsort(-scores, axis=1, kind="stable")[:, :top]
            np.testing.assert_array_equal(best_columns(scores, top), wanted)


def test_lists_that_are_judged_or_attacked_are_those_that_are_shown(tmp_path: Path) -> None:
    """Made from unrestricted histories where a run promises something; what is right is what somebody took later, marked or not."""
    from veilgraph.attack.attribute.inference import scene
    from veilgraph.recommend.shelf import Shelf

    graph = split(shop(np.random.default_rng(4)), valid=0.1, test=0.2, mode="latest")
    hidden = mark(graph, random_share=0.6, seed=1)
    is_ = mark(graph, relations=["is"])
    keys = np.concatenate(
        [a[graph.with_marks(m).secret(s)] for m in (hidden, is_) for s, a in graph.splits.items()]
    )
    marked = graph.with_marks(mark(graph, statements=keys))
    run = train(marked, out=tmp_path / "run", drop_confidential=True, model="distmult", epochs=3, threads=1)
    open_ = readable(run, marked)
    shelf = Shelf.of(run, open_, relation="took", splits=("train", "valid"))
    shown = shelf.part(np.arange(len(shelf.users)))
    had, later = (
        {(h, t) for s in splits for h, r, t in marked.splits[s].tolist() if r == 1}
        for splits in (("train", "valid"), ("test",))
    )
    right = np.array([[(u, i) in later - had for i in shown.items.tolist()] for u in shown.users.tolist()])
    told = {row["recommender"]: row for row in judge(run, top=5, relation="took")}
    assert told["distmult"]["hit"] == pytest.approx(quality(shown.best(5), right)["hit"])
    assert told["distmult"]["ndcg"] == pytest.approx(quality(shown.best(5), right)["ndcg"])
    offers, _, _, wanted = scene(run, "is", None, "took", "lists")
    assert (offers.best(5) == shown.best(5)).all()
    assert (wanted == right).all()
