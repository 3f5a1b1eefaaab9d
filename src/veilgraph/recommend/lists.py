"""Items for users from a run: ``recommend(run, "user/17", top=10)``, and how good such lists are beside simple recommenders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilgraph.errors import InputError
from veilgraph.mark.rules import unrestricted
from veilgraph.recommend.baselines import BASELINES
from veilgraph.recommend.measures import quality
from veilgraph.recommend.offers import Offers, relation_of, scaled
from veilgraph.recommend.shelf import Shelf, held, history_of, offers_of

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph
    from veilgraph.run.run import Run


def recommend(
    run: Run,
    user: str,
    *,
    top: int = 10,
    relation: str | None = None,
    known: bool = False,
    graph: Graph | str | Path | None = None,
) -> list[dict[str, Any]]:
    """``[{item, score, rank}]`` for one user, best first; what the user has (in any split) is left out unless ``known``.

    Reads confidential data: none in a run that promises something — what a user has is taken from unrestricted statements.
    """
    open_ = readable(run, run.graph(graph))
    shelf = Shelf.of(run, open_, relation=relation, splits=tuple(open_.splits))
    place = shelf.place(user)
    if place is None:
        name = open_.relations[shelf.relation]
        raise InputError(f"{user} has no {name} that may be read, so there is nothing to go by.")
    one = shelf.part(np.array([place]))
    free = int(one.allowed(repeat=known).sum())
    columns = one.best(min(top, free), repeat=known)[0] if free else []
    return [
        {"item": run.entities[int(one.items[column])], "score": float(one.scores[0, column]), "rank": rank}
        for rank, column in enumerate(columns, 1)
    ]


def readable(run: Run, graph: Graph) -> Graph:
    """What lists of a run may be made from: everything where nothing was to be promised, unrestricted statements otherwise."""
    return unrestricted(graph) if run.config.private or run.config.drop_confidential else graph


def later_of(graph: Graph, relation: int, offers: Offers) -> np.ndarray:
    """``[u, i]`` what the users of offers took later and had not before; all of it is looked at."""
    before, later = (
        held(history_of(graph, relation, splits), relation, offers.users, offers.items)
        for splits in (("train", "valid"), ("test",))
    )
    return later & ~before & ~offers.taken


def judge(
    run: Run, *, top: int = 10, relation: str | None = None, graph: Graph | str | Path | None = None
) -> list[dict[str, Any]]:
    """hit, recall, ndcg and coverage of new items, for the run and for simple recommenders, on the test split.

    Lists are those that are shown (``recommend``, ``veil sanitise``, ``veil serve``): made from what may be read. What is right is what
    somebody took later and had not before, whether it is confidential or not.

    Reads confidential data: all statements of the relation. Releases: nothing; figures are for the curator.
    """
    found = run.graph(graph)
    open_ = readable(run, found)
    number = relation_of(open_, relation)
    offers = offers_of(run, open_, relation=open_.relations[number], splits=("train", "valid"))
    users, items, taken = offers.users, offers.items, offers.taken
    later = later_of(found, number, offers)
    if not later.any():
        raise InputError("nothing of the test split can be recommended: split the graph with --split latest.")
    scores = {f"{run.config.model}": offers.scores}
    scores |= {name: scaled(make(taken)) for name, make in BASELINES.items()}
    return [
        {"recommender": name, "top": top, **quality(Offers(users, items, given, taken).best(top), later)}
        for name, given in scores.items()
    ]
