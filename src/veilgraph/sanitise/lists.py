"""Sanitised lists of a run: ``sanitised(run, "balanced", attribute="gender")``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.errors import PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.mark import unrestricted
from veilgraph.recommend import readable
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
    everyone_told: bool = False,
    seed: int | None = None,
) -> dict[str, Any]:
    """sanitiser, q_u, ndcg (beside that of the lists as they were), epsilon, promise, and the lists by user.

    Reads confidential data: none in a run that promises something — what users have, and what they told about themselves, is
    taken from unrestricted statements. ``everyone_told`` says that the attribute may be learnt from although it is marked:
    then lists depend on it, without noise (nobody's own list on what they told themselves). Releases: lists, with the
    promise that is stated; the figures are the curator's.
    """
    found = run.graph(graph)
    open_ = readable(run, found)
    chain = sanitisers(words)
    offers = offers_of(run, open_, relation=relation, splits=("train", "valid"))
    later = table_of(open_, relation_of(open_, relation), ("test",))[2] & ~offers.taken
    values = np.full(len(offers.users), -1)
    if attribute is not None:
        told = found if everyone_told else unrestricted(found)
        if not (told.triples[:, 1] == told.relations.id(attribute)).any():
            raise PrivacyError(
                f"{attribute} is confidential for everybody: nobody told it, so nothing may be learnt from it. Leave it unmarked "
                "for people who agreed, or say --everyone-told: lists then depend on it, without noise."
            )
        values = Attribute.read(told, attribute, offers.users).of
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
