"""Sanitised lists of a run: ``sanitised(run, "balanced", attribute="gender")``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.errors import PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.mark import unrestricted
from veilgraph.recommend import readable
from veilgraph.recommend.measures import gains, kept_score, wanted
from veilgraph.recommend.shelf import TOGETHER, Shelf, held, history_of
from veilgraph.run.run import Run
from veilgraph.sanitise import Sanitiser, epsilon, promise, sanitisers
from veilgraph.sanitise.people import Attribute, Policy


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
    listed: str | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """sanitiser, q_u, ndcg (beside that of the lists as they were), epsilon, promise, decided_from, and the lists by user.

    ``listed`` names the public list of all items (recommend/catalogue.py): a file, without which no ε holds, or how names begin.

    Reads confidential data: none in a run that promises something — what users have, and what they told about themselves, is
    taken from unrestricted statements. ``everyone_told`` says that the attribute may be learnt from although it is marked:
    then lists depend on it, without noise (nobody's own list on what they told themselves). Releases: lists, with the
    promise that is stated; the figures are the curator's.
    """
    found = run.graph(graph)
    open_ = readable(run, found)
    chain = sanitisers(words)
    shelf = Shelf.of(run, open_, relation=relation, splits=("train", "valid"), listed=listed)
    policy = learnt(shelf, chain, found, attribute, everyone_told=everyone_told)
    test = history_of(open_, shelf.relation, ("test",))
    everybody = np.arange(len(shelf.users))
    lists, kept, better, before = [], [], [], []
    for start in range(0, len(everybody), TOGETHER):
        places = everybody[start : start + TOGETHER]
        offers = shelf.part(places)
        fresh = None if seed is None else seed + start
        made = policy.lists(offers, places, top=top, repeat=repeat, seed=fresh)
        original = offers.best(top, repeat=repeat)
        later = held(test, shelf.relation, offers.users, shelf.items) & ~offers.taken
        right = wanted(later, offers.taken, repeat=repeat)
        lists.append(made)
        kept.append(kept_score(offers.scores, made, original))
        better.append(gains(made, right))
        before.append(gains(original, right))
    judged = np.concatenate(better)
    return {
        "sanitiser": words,
        "q_u": float(np.concatenate(kept).mean()),
        "ndcg": float(judged.mean()) if len(judged) else None,
        "ndcg_original": float(np.concatenate(before).mean()) if len(judged) else None,
        "epsilon": epsilon(chain) if seed is None else None,
        "promise": promise(chain),
        "decided_from": decided_from(shelf, chain, relation),
        "lists": {
            user: run.entities.names(shelf.items[row])
            for user, row in zip(run.entities.names(shelf.users), np.concatenate(lists))
        },
    }


def decided_from(shelf: Shelf, chain: Sequence[Sanitiser], relation: str | None) -> list[str]:
    """What lists with an ε take to be public although data decided it."""
    if epsilon(chain) is None:
        return []
    name = shelf.run.relations[shelf.relation]
    chosen = (
        [] if relation is not None else [f"the relation of the lists, {name}: the commonest of the graph"]
    )
    return [
        *chosen,
        f"who has a list: whoever has any {name}",
        "that the graph has every item of the catalogue",
    ]


def learnt(
    shelf: Shelf, chain: Sequence[Sanitiser], graph: Graph, attribute: str | None, *, everyone_told: bool
) -> Policy:
    """The policy of a run's lists; an attribute is learnt from people who told it, or whom ``everyone_told`` speaks for.

    Reads confidential data: the attribute of everybody, if ``everyone_told``.
    """
    values = np.full(len(shelf.users), -1)
    if attribute is not None:
        told = graph if everyone_told else unrestricted(graph)
        if not (told.triples[:, 1] == told.relations.id(attribute)).any():
            raise PrivacyError(
                f"{attribute} is confidential for everybody: nobody told it, so nothing may be learnt from it. Leave it unmarked "
                "for people who agreed, or say --everyone-told: lists then depend on it, without noise."
            )
        values = Attribute.read(told, attribute, shelf.users).of
    return Policy.prepare(shelf, chain, values >= 0, values)
