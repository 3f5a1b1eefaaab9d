"""Membership: was this statement in the graph? Members against non-members that differ in nothing else, beside a control."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from veilgraph.attack.membership.control import control
from veilgraph.attack.membership.curve import measure
from veilgraph.attack.membership.pool import Pool, matched, unit_of_marks, withheld
from veilgraph.attack.standing import standing
from veilgraph.errors import ConfigError
from veilgraph.layout import ATTACKS
from veilgraph.load import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rng import check_seed
from veilgraph.run.measured import about, remember
from veilgraph.run.run import Run
from veilgraph.train import train
from veilgraph.train.loop import Listener

COUNT = 2000  # statements that are decided about, unless said otherwise
USUAL = {"count": COUNT, "shadows": 0, "seed": 0}


def membership(
    run: Run,
    *,
    graph: Graph | str | Path | None = None,
    count: int = COUNT,
    shadows: int = 0,
    seed: int = 0,
    withhold: bool = False,
    listener: Listener | None = None,
) -> dict[str, Any]:
    """auc, tpr@fpr=0.01, tpr@fpr=0.001 with 95 % intervals, members, non_members; per attack, each beside its control.

    What is decided about is what a promise is about: a unit. Members are confidential training statements (any, if nothing is
    marked). Non-members are held-out ones, each matched with a member like it; or, with ``withhold``, a twin of the run is trained
    with its settings, without units that a fair coin took out, and attacked (the scores of a unit's statements are added up). Where
    a unit is more than a statement, only this is done. ``control`` is the same attack on a model that never read a confidential
    statement: ½ but for chance, or the pool is to blame. ``rank`` and ``score`` need the vectors alone; with ``shadows`` the attacker
    also trains that many runs of his own and decides by likelihood ratio (Carlini et al. 2022, arXiv 2112.03570).

    Reads confidential data: the statements to decide about, and the truth. Releases: nothing; for the curator.
    """
    check_seed(seed)
    if count < 20 or shadows < 0:
        raise ConfigError(
            f"the attack decides about 20 statements at least, with 0 shadows or more; found {count} and {shadows}."
        )
    found, attacked = run.graph(graph), run
    with tempfile.TemporaryDirectory() as folder:
        if withhold:
            found, pool = withheld(found, count, np.random.Generator(np.random.SFC64()))
            run = train(found, out=Path(folder) / "twin", listener=listener, **_settings(run))
        else:
            pool = matched(found, count, np.random.default_rng(seed))
        reciprocal = bool(run.config.reciprocal)
        attacks = dict(
            zip(("score", "rank"), _scores(run.model, run.parameters, reciprocal, pool.statements))
        )
        controls = dict(zip(attacks, _scores(*control(run, found, Path(folder), listener), pool.statements)))
    if shadows:
        ratio = _likelihood_ratio(run, found, pool, shadows, seed)
        attacks["likelihood-ratio"], controls["likelihood-ratio"] = (
            ratio(attacks["score"]),
            ratio(controls["score"]),
        )
    results = {name: measure(pool.by_unit(score), pool.units, seed) for name, score in attacks.items()}
    for name, own in results.items():
        beside = measure(pool.by_unit(controls[name]), pool.units, seed)
        own |= {"control": beside["auc"], "control_interval": beside["auc_interval"]}
    best = max(results, key=lambda name: results[name]["auc"])
    told = {
        **results[best],
        "interval": results[best]["auc_interval"],
        "attack": best,
        "members": int(pool.units.sum()),
        "non_members": int((~pool.units).sum()),
        "decides_about": unit_of_marks(found),
        "non_members_are": "withheld" if withhold else "matched",
        "attacks": results,
        "guarantee": attacked.guarantee,  # (a twin's folder is gone by now)
        "epsilon": attacked.epsilon,
    }
    if not withhold:
        remember(attacked, ATTACKS, about(attacked, found, count=count, shadows=shadows, seed=seed), told)
    return told


def _settings(run: Run) -> dict[str, Any]:
    return {key: value for key, value in run.config.as_dict().items() if value is not None}


def _scores(
    model: Model, p: Parameters, reciprocal: bool, statements: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability and (negative logarithm of the) rank of every statement, both sides together."""
    ids = torch.from_numpy(statements.astype(np.int64))
    logs, ranks = zip(*(standing(model, p, ids, side, reciprocal) for side in ("tail", "head")))
    return sum(logs).double().numpy(), -sum(rank.log() for rank in ranks).double().numpy()


def _likelihood_ratio(
    run: Run, graph: Graph, pool: Pool, shadows: int, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """From statements' scores to how much likelier they are among the shadows that had the statement than among those that had not."""
    rng = np.random.default_rng([seed, 1])
    settings = _settings(run)
    keys = graph.keys(pool.statements)
    rest = graph.train[~np.isin(graph.keys(graph.train), keys)]
    had = np.zeros((shadows, len(keys)), bool)
    seen = np.zeros((shadows, len(keys)))
    with tempfile.TemporaryDirectory() as folder:
        for shadow in range(shadows):
            half = rng.permutation(len(pool.units)) < len(pool.units) // 2
            had[shadow] = (
                half[pool.unit] if shadow % 2 == 0 else ~had[shadow - 1]
            )  # in pairs: each statement is in half of them
            inside = np.concatenate([rest, pool.statements[had[shadow]]])
            shadow_graph = graph.with_splits({**graph.splits, "train": inside})
            options = {**settings, "seed": run.config.seed + 1000 + shadow}
            trained = train(shadow_graph, out=Path(folder) / str(shadow), **options)
            seen[shadow], _ = _scores(
                trained.model, trained.parameters, bool(run.config.reciprocal), pool.statements
            )
    spread = np.sqrt(np.mean([(seen[had].var(), seen[~had].var())])) + 1e-9
    inside_mean = np.where(had, seen, 0).sum(0) / np.maximum(had.sum(0), 1)
    outside_mean = np.where(~had, seen, 0).sum(0) / np.maximum((~had).sum(0), 1)
    return lambda target: ((target - outside_mean) ** 2 - (target - inside_mean) ** 2) / (2 * spread**2)
