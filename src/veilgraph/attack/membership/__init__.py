"""Membership: was this statement in the graph? Real members against real non-members."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from veilgraph.attack.membership.curve import measure
from veilgraph.attack.standing import standing
from veilgraph.errors import InputError, UsageError
from veilgraph.load import Graph
from veilgraph.models.base import Model
from veilgraph.models.parameters import Parameters
from veilgraph.rng import check_seed
from veilgraph.runs import Run
from veilgraph.train import train


@dataclass(frozen=True)
class Pool:
    """Statements to decide about, and the truth."""

    statements: np.ndarray
    member: np.ndarray


def membership(
    run: Run,
    *,
    graph: Graph | str | Path | None = None,
    count: int = 2000,
    shadows: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """auc, tpr@fpr=0.01, tpr@fpr=0.001 with 95 % intervals, members, non_members; per attack.

    Members are confidential training statements (any, if nothing is marked); non-members are held-out true statements of
    the same kind, which no training has seen. ``rank`` and ``score`` need the vectors alone; with ``shadows`` the
    attacker also trains that many runs of his own and decides by likelihood ratio (Carlini et al. 2022, arXiv 2112.03570).

    Reads confidential data: the statements to decide about, and the truth. Releases: nothing; for the curator.
    """
    check_seed(seed)
    if count < 20 or shadows < 0:
        raise UsageError(
            f"the attack decides about 20 statements at least, with 0 shadows or more; found {count} and {shadows}."
        )
    found = run.graph(graph)
    pool = _pool(found, count, np.random.default_rng(seed))
    model, parameters, reciprocal = run.model, run.parameters, bool(run.config.reciprocal)
    loss, rank = _scores(model, parameters, pool.statements, reciprocal)
    attacks = {"score": loss, "rank": rank}
    if shadows:
        attacks["likelihood-ratio"] = _likelihood_ratio(run, found, pool, loss, shadows, seed)
    results = {name: measure(score, pool.member, seed) for name, score in attacks.items()}
    best = max(results, key=lambda name: results[name]["auc"])
    return {
        **results[best],
        "attack": best,
        "members": int(pool.member.sum()),
        "non_members": int((~pool.member).sum()),
        "attacks": results,
        "guarantee": run.guarantee,
        "epsilon": run.epsilon,
    }


def _pool(graph: Graph, count: int, rng: np.random.Generator) -> Pool:
    marked = graph.marks is not None and graph.secret("train").any()
    inside = graph.train[graph.secret("train")] if marked else graph.train
    held = [s for s in graph.splits if s != "train"]
    outside = np.concatenate(
        [graph.splits[s][graph.secret(s)] if marked else graph.splits[s] for s in held] or [inside[:0]]
    )
    outside = outside[~np.isin(graph.keys(outside), graph.keys(graph.train))]
    if len(outside) < 20 or len(inside) < 20:
        raise InputError(
            f"the attack needs real non-members: found {len(outside)} held-out and {len(inside)} training statements of the "
            "kind that is confidential, 20 of each are the least. Load the graph with --split random."
        )
    size = min(count, len(inside), len(outside))
    members = inside[rng.choice(len(inside), size, replace=False)]
    others = outside[rng.choice(len(outside), size, replace=False)]
    return Pool(np.concatenate([members, others]), np.repeat([True, False], size))


def _scores(
    model: Model, p: Parameters, statements: np.ndarray, reciprocal: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability and (negative logarithm of the) rank of every statement, both sides together."""
    ids = torch.from_numpy(statements.astype(np.int64))
    logs, ranks = zip(*(standing(model, p, ids, side, reciprocal) for side in ("tail", "head")))
    return sum(logs).double().numpy(), -sum(rank.log() for rank in ranks).double().numpy()


def _likelihood_ratio(
    run: Run, graph: Graph, pool: Pool, target: np.ndarray, shadows: int, seed: int
) -> np.ndarray:
    """For each statement: how much likelier its score is among the shadows that had it than among those that had not."""
    rng = np.random.default_rng([seed, 1])
    settings = {k: v for k, v in run.config.as_dict().items() if v is not None}
    keys = graph.keys(pool.statements)
    rest = graph.train[~np.isin(graph.keys(graph.train), keys)]
    had = np.zeros((shadows, len(keys)), bool)
    seen = np.zeros((shadows, len(keys)))
    with tempfile.TemporaryDirectory() as folder:
        for shadow in range(shadows):
            half = rng.permutation(len(keys)) < len(keys) // 2
            had[shadow] = (
                half if shadow % 2 == 0 else ~had[shadow - 1]
            )  # in pairs: each statement is in half of them
            inside = np.concatenate([rest, pool.statements[had[shadow]]])
            shadow_graph = graph.with_splits({**graph.splits, "train": inside})
            options = {**settings, "seed": run.config.seed + 1000 + shadow}
            trained = train(shadow_graph, out=Path(folder) / str(shadow), **options)
            seen[shadow], _ = _scores(
                trained.model, trained.parameters, pool.statements, bool(run.config.reciprocal)
            )
    spread = np.sqrt(np.mean([(seen[had].var(), seen[~had].var())])) + 1e-9
    inside_mean = np.where(had, seen, 0).sum(0) / np.maximum(had.sum(0), 1)
    outside_mean = np.where(~had, seen, 0).sum(0) / np.maximum((~had).sum(0), 1)
    return ((target - outside_mean) ** 2 - (target - inside_mean) ** 2) / (2 * spread**2)
