"""Attribute inference: what does somebody learn about a hidden attribute who sees recommendation lists?

The attacker knows the attribute of some people (he may have asked them) and sees their lists, sanitised the same way as
everybody's (an adaptive attacker). Everybody is a target once: half of the people told the service their attribute, the
other half are targets; those are guessed in parts, from the lists of all others; then the halves change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.attack.attribute.chosen import chosen
from veilgraph.attack.attribute.knowledge import Knowledge, knowledge_of
from veilgraph.errors import PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.recommend.lists import later_of, readable
from veilgraph.recommend.measures import kept_score, quality, wanted
from veilgraph.recommend.offers import Offers, relation_of
from veilgraph.recommend.shelf import offers_of
from veilgraph.run.run import Run
from veilgraph.sanitise import Sanitiser, sanitisers
from veilgraph.sanitise.people import Attribute, Policy
from veilgraph.train.session import visible

FOLDS = 5
DRAWS = 1000  # of the bootstrap
REGIMES = {True: "lists may repeat known items", False: "new items only"}


def attribute(
    run: Run,
    name: str,
    *,
    graph: Graph | str | Path | None = None,
    relation: str | None = None,
    listed: str | None = None,
    sanitise: str | None = None,
    attacker: str = "best",
    knowledge: str = "lists",
    top: int = 10,
    repeat: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """attribute, attacker, balanced_accuracy, interval, majority, targets, auc, accuracy, q_u and ndcg; per attacker too.

    ``best`` is, for every part of the people, the attacker that did best in its rehearsal on the others. ``strongest`` names
    the one that did best on the targets themselves: a defence should be judged by it, though luck is in it.

    Reads confidential data: the attribute of everybody. Releases: nothing; for the curator.
    """
    chain = sanitisers(sanitise) if sanitise else []
    offers, secret, extra, later = scene(run, name, graph, relation, knowledge, listed)
    return attack(
        offers, secret, chain, extra, later, attacker=attacker, top=top, repeat=repeat, seed=seed
    ) | {"sanitiser": sanitise or "none", "knowledge": knowledge, "lists": REGIMES[repeat]}


def scene(
    run: Run,
    name: str,
    graph: Graph | str | Path | None,
    relation: str | None,
    knowledge: str,
    listed: str | None = None,
) -> tuple[Offers, Attribute, Knowledge, np.ndarray]:
    """What a run offers, the secret of everybody, what the attacker knows beside lists, and what users took later."""
    found = run.graph(graph)
    refuse_a_recommender_that_knows(run, found, name)
    open_ = readable(run, found)  # (the lists that are shown)
    number = relation_of(open_, relation)
    offers = offers_of(run, open_, relation=open_.relations[number], splits=("train", "valid"), listed=listed)
    later = later_of(found, number, offers)
    extra = knowledge_of(found, offers, (name, found.relations[number]), knowledge)
    return offers, Attribute.read(found, name, offers.users), extra, later


def refuse_a_recommender_that_knows(run: Run, graph: Graph, name: str) -> None:
    """Raise if the run has read the attribute: then lists could tell it however the service treats them."""
    relation = graph.relations.id(name)
    if (visible(graph, run.config).train[:, 1] == relation).any():
        raise PrivacyError(
            f"the recommender has read {name}. Mark it (veil mark GRAPH --relation {name}) and train with "
            "--drop-confidential, so that lists cannot know it from anywhere but behaviour."
        )


def attack(
    offers: Offers,
    secret: Attribute,
    chain: Sequence[Sanitiser],
    extra: Knowledge,
    later: np.ndarray | None = None,
    *,
    attacker: str = "best",
    top: int = 10,
    repeat: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """The same from scores; ``extra`` is what the attacker knows beside the lists."""
    tried_by = chosen(attacker)
    people = np.flatnonzero(secret.of >= 0)
    rng = np.random.default_rng(seed)
    half = np.full(len(secret.of), -1)
    half[people] = _parts(secret.of[people], 2, rng)
    original = offers.best(top, repeat=repeat)
    names = [*tried_by, "best"] if len(tried_by) > 1 else list(tried_by)
    chances = {name: np.zeros((len(secret.of), len(secret.values))) for name in names}
    kept, gains = [], []
    for targets in (0, 1):
        told = half == 1 - targets
        policy = Policy.prepare(offers, chain, told, secret.of)
        lists = policy.lists(offers, np.arange(len(secret.of)), top=top, repeat=repeat, seed=seed)
        rows = np.flatnonzero(half == targets)
        kept.append(kept_score(offers.scores, lists, original)[rows])
        if later is not None:
            right = wanted(later, offers.taken, repeat=repeat)[rows]
            gains.append((quality(lists[rows], right)["ndcg"], quality(original[rows], right)["ndcg"]))
        features = extra.with_lists(lists)
        fold = np.full(len(secret.of), -1)
        fold[rows] = _parts(secret.of[rows], FOLDS, rng)
        for number in range(FOLDS):
            learn, tried = people[fold[people] != number], np.flatnonzero(fold == number)
            rehearsed = {}
            for name, one in tried_by.items():
                chances[name][tried], rehearsed[name] = one.guess(
                    features[learn], secret.of[learn], features[tried], len(secret.values)
                )
            if "best" in chances:
                chances["best"][tried] = chances[max(rehearsed, key=lambda name: rehearsed[name])][tried]
    results = {name: measure(found[people], secret.of[people], seed) for name, found in chances.items()}
    told_by = "best" if "best" in results else attacker
    strongest = max(tried_by, key=lambda name: results[name]["balanced_accuracy"])
    counts = np.bincount(secret.of[people])
    return {
        "attribute": secret.name,
        "attacker": told_by,
        **results[told_by],
        "strongest": {"attacker": strongest, **results[strongest]},
        "majority": float(counts.max() / counts.sum()),
        "coin": 1 / len(secret.values),
        "targets": len(people),
        "q_u": float(np.concatenate(kept).mean()),
        "ndcg": float(np.mean([one for one, _ in gains])) if gains else None,
        "ndcg_original": float(np.mean([other for _, other in gains])) if gains else None,
        "attackers": results,
    }


def measure(chances: np.ndarray, values: np.ndarray, seed: int = 0) -> dict[str, Any]:
    """accuracy, balanced accuracy (with a 95 % interval over people) and AUC (mean over values, each against the rest)."""
    from scipy import stats

    right = chances.argmax(1) == values
    kinds = np.unique(values)
    rng = np.random.default_rng(seed)
    draws = np.zeros(DRAWS)
    areas = []
    for kind in kinds:
        own = right[values == kind]
        draws += rng.binomial(len(own), own.mean(), DRAWS) / len(own) / len(kinds)
        ranks = stats.rankdata(chances[:, kind])
        count = len(own)
        areas.append(
            (ranks[values == kind].sum() - count * (count + 1) / 2) / (count * (len(values) - count))
        )
    return {
        "balanced_accuracy": float(np.mean([right[values == kind].mean() for kind in kinds])),
        "interval": [float(v) for v in np.quantile(draws, (0.025, 0.975))],
        "accuracy": float(right.mean()),
        "auc": float(np.mean(areas)),
    }


def _parts(values: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """A part for everybody, every value spread evenly over the parts."""
    order = np.lexsort((rng.random(len(values)), values))
    part = np.empty(len(values), int)
    part[order] = (np.arange(len(values)) + rng.integers(count)) % count
    return part
