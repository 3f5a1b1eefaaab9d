"""Sanitised lists of a run: ``sanitised(run, "balanced", attribute="gender")``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.load.graph import Graph
from veilgraph.recommend.measures import kept_score, quality
from veilgraph.recommend.offers import offers_of, relation_of, table_of
from veilgraph.runs import Run
from veilgraph.sanitise import epsilon, sanitisers
from veilgraph.sanitise.people import Attribute, lists_for


def sanitised(
    run: Run,
    words: str,
    *,
    attribute: str | None = None,
    relation: str | None = None,
    top: int = 10,
    repeat: bool = False,
    graph: Graph | str | Path | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """sanitiser, q_u, ndcg (beside that of the lists as they were), epsilon, promise, and the lists by user.

    Reads confidential data: what users have, and their attribute if a sanitiser learns from it (nobody's own list is made
    with what they told). Releases: lists, with the promise that is stated.
    """
    found = run.graph(graph)
    chain = sanitisers(words)
    offers = offers_of(run, found, relation=relation, splits=("train", "valid"))
    later = table_of(found, relation_of(found, relation), ("test",))[2] & ~offers.taken
    values = np.full(len(offers.users), -1)
    if attribute is not None:
        values = Attribute.read(found, attribute, offers.users).of
    lists = lists_for(offers, chain, values >= 0, values, top=top, repeat=repeat, seed=seed)
    original = offers.best(top, repeat=repeat)
    judged = later.any()
    return {
        "sanitiser": words,
        "q_u": float(kept_score(offers.scores, lists, original).mean()),
        "ndcg": quality(lists, later)["ndcg"] if judged else None,
        "ndcg_original": quality(original, later)["ndcg"] if judged else None,
        "epsilon": epsilon(chain) if seed is None else None,
        "promise": "; ".join(one.promise for one in chain),
        "lists": {
            run.entities[int(user)]: [run.entities[int(offers.items[column])] for column in row]
            for user, row in zip(offers.users, lists)
        },
    }
