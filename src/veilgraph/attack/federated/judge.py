"""How well an attacker of a federation tells what a client has: ``federated("f/", "passive")``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph import registry
from veilgraph.attack.federated.active import reversed_tails
from veilgraph.attack.federated.base import Attack, Scene
from veilgraph.attack.federated.targets import Targets
from veilgraph.attack.membership.curve import auc, measure
from veilgraph.errors import InputError
from veilgraph.federate.member import terms_of
from veilgraph.federate.names import read_secret, tokens
from veilgraph.federate.places import CLIENTS, SECRET
from veilgraph.load.source import load
from veilgraph.run.run import Run


def federated(folder: str | Path, kind: str, *, auxiliary: Any = None, seed: int = 0) -> dict[str, Any]:
    """kind, round, auc, f1, tpr@fpr=0.01 with intervals, members, non_members: of the round that calibration chose, and of each.

    Half of the targets calibrate: they choose round, score and threshold, and are not counted; then the halves change places.
    ``best f1 over rounds`` is what the paper reports: the best of all rounds, chosen by the result itself. ``auxiliary`` are true
    statements for the server (a graph; default: the victim's validation split). ``published`` is about the victim's finished run.

    Where the victim sends nothing, or nothing that tells its statements apart, ``nothing_sent`` is true and ``why`` says so: there is no
    figure, because an AUC of constants would be chance whatever the defence.

    Reads confidential data: the truth about the targets, to judge. Releases: nothing; for the researcher.
    """
    attack: Attack = registry.find("attacks", kind)()
    scene = _scene(Path(folder), auxiliary)
    counted = {
        "kind": kind,
        "strategy": scene.strategy.name,
        "members": int(scene.targets.member.sum()),
        "non_members": int((~scene.targets.member).sum()),
    }
    if kind != "published" and scene.silent:
        why = (
            "it takes no step, and its promise is kept by counts"
            if scene.idle
            else "its rows stayed as they were"
        )
        return counted | _nothing(
            f"{scene.targets.victim} sent nothing: {why}. Ask what it publishes: --kind published"
        )
    blind = attack.blind(scene)
    if blind is not None:
        return counted | _nothing(f"under strategy {scene.strategy.name} {blind}")
    rows: list[dict[str, Any]] = []
    every: dict[str, np.ndarray] = {}
    looked = 0
    for number in attack.rounds(scene):
        found = attack.scores(scene, number) or {}
        looked += len(found)
        scores = {
            name: score for name, score in found.items() if np.isfinite(score).all() and np.ptp(score) > 0
        }
        if scores:
            rows.append({"round": number, **_judged(scores, scene.targets.member, seed)})
            every |= {f"{name}, round {number}": score for name, score in scores.items()}
    if looked and not rows:
        return counted | _nothing("what this attacker sees is the same for every target")
    if not rows:
        hint = " Listen with --active." if kind == "active" else ""
        raise InputError(f"{folder}: the transcript holds no round for the {kind} attack.{hint}")
    best = _judged(every, scene.targets.member, seed)
    return {
        **counted,
        "nothing_sent": False,
        "why": None,
        "round": int(str(best["score"]).rpartition(" ")[2]),  # of the second half; the score names both
        **best,
        "best f1 over rounds": max(row["f1"] for row in rows),
        "rounds": rows,
    }


FIGURES = ("auc", "auc_interval", "tpr@fpr=0.01", "tpr@fpr=0.01_interval")


def _nothing(why: str) -> dict[str, Any]:
    """Where there is nothing to decide by."""
    keys = ("round", *FIGURES, "f1", "score", "best f1 over rounds")
    return {"nothing_sent": True, "why": f"{why}.", **dict.fromkeys(keys), "rounds": []}


def _scene(folder: Path, auxiliary: Any) -> Scene:
    targets = Targets.read(folder)
    attacker = Run.open(folder / CLIENTS / targets.attacker)
    victim = Run.open(folder / CLIENTS / targets.victim)
    shares = registry.find("strategies", terms_of(attacker.folder).strategy)()
    names = attacker.relations.ids(relation for _, relation, _ in targets.statements)
    order = np.argsort(np.lexsort(tokens(list(victim.entities), read_secret(folder / SECRET)).T[::-1]))
    places = order[np.stack([victim.entities.ids(one[i] for one in targets.statements) for i in (0, 2)], 1)]
    graph = victim.graph() if auxiliary is None else load(auxiliary)
    rows = graph.splits.get("valid", np.empty((0, 3), np.int32)) if auxiliary is None else graph.triples
    heads, kinds, tails = (
        here.places(there.names(rows[:, column]))
        for here, there, column in (
            (victim.entities, graph.entities, 0),
            (attacker.relations, graph.relations, 1),
            (victim.entities, graph.entities, 2),
        )
    )
    known = (heads >= 0) & (kinds >= 0) & (tails >= 0)
    true = list(zip(order[heads[known]].tolist(), kinds[known].tolist(), order[tails[known]].tolist()))
    scene = Scene(folder / "transcript", attacker.model, targets, names, places, victim, shares, False, true)
    seen = (scene.seen("client", number) for number in scene.rounds("client"))
    return replace(scene, hostile=any(reversed_tails(one) for one in seen if one is not None))


def _judged(scores: dict[str, np.ndarray], member: np.ndarray, seed: int) -> dict[str, Any]:
    """Two halves, each judged with the score and the threshold that the other one chose; figures of both together."""
    half = np.zeros(len(member), bool)
    for value in (True, False):
        own = np.random.default_rng(seed).permutation(np.flatnonzero(member == value))
        half[own[: len(own) // 2]] = True
    ranks, guess = np.empty(len(member)), np.empty(len(member), bool)
    chosen = []
    for judged in (half, ~half):
        found = {name: auc(score[~judged], member[~judged]) for name, score in scores.items()}
        name = max(found, key=lambda one: found[one])
        chosen.append(name)
        threshold = _best_threshold(scores[name][~judged], member[~judged])
        guess[judged] = scores[name][judged] > threshold
        order = np.argsort(np.argsort(scores[name][judged], kind="stable"), kind="stable")
        ranks[judged] = order / max(judged.sum(), 1)
    whole = measure(ranks, member, seed)
    hit = int((guess & member).sum())
    f1 = 2 * hit / max(int(guess.sum()) + int(member.sum()), 1)
    return {
        **{key: whole[key] for key in FIGURES},
        "f1": f1,
        "score": " / ".join(dict.fromkeys(chosen)),
    }


def _best_threshold(score: np.ndarray, member: np.ndarray) -> float:
    """Where F1 is best on these."""
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(member[order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + member.sum())
    best = int(f1.argmax())
    after = score[order[best + 1]] if best + 1 < len(order) else -np.inf
    return float(np.mean([score[order[best]], after])) if np.isfinite(after) else -np.inf
