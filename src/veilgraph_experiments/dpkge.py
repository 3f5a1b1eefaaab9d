"""DPKGE's regimes (the paper's and ours), its ε, and the statistics its tables are made of."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from veilgraph import models
from veilgraph.load import Graph
from veilgraph.rank.metrics import interval
from veilgraph_experiments.job import Job

MODELS = ("transe", "transm", "rescal", "distmult")
REGIMES = (
    "no privacy",
    "dropped",
    "dropped, counted",
    "as published",
    "all noisy, as published",
    "sound",
    "counts",
)
FREE = REGIMES[:3]  # no ε is claimed
SMALL = 50_000  # statements
EVERYTHING = {"rules": [{"everything": True}]}


def half(seed: int, share: float = 0.5) -> dict[str, Any]:
    """A random share of the statements is confidential."""
    return {"rules": [{"random_share": share, "seed": seed}]}


def count(graph: Graph, marks: Mapping[str, Any] | None) -> int:
    """Confidential training statements: the published variants are run with it, and promise nothing."""
    from veilgraph.mark import mark_by_rules

    if marks is None:
        return int(graph.secret("train").sum())
    return int(graph.with_marks(mark_by_rules(graph, marks, absent=True)).secret("train").sum())


def published_epsilon(statements: int, confidential: int, sigma: float, epochs: int) -> float:
    """ε by the paper's way of counting: batches of √N drawn as if by coins, δ = 1/N, integer orders, its conversion."""
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    batch = math.sqrt(statements)
    rate, steps = min(1.0, batch / confidential), max(1, round(epochs * confidential / batch))
    orders = list(range(2, 65))
    accountant = RdpAccountant(orders)
    accountant.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), steps)
    found = zip(orders, accountant._rdp, strict=True)
    return float(min(rdp + math.log(statements) / (order - 1) for order, rdp in found))


def job(
    folder: str,
    graph: Graph,
    regime: str,
    model: str,
    marks: Mapping[str, Any] | None,
    *,
    sigma: float = 1.0,
    epochs: int = 100,
    dimension: int = 50,
    seed: int = 0,
    quantile: float = 0.2,
    epsilon: float | None = None,
    measures: Sequence[str] = ("link", "trace"),
    **more: Any,
) -> Job:
    """One training of one regime; all regimes of a model have the same settings.

    The published regimes add noise to touched rows only and have no guarantee. «sound» is ours with its defaults, for
    the ε the paper would claim.
    """
    defaults = models.model_class(model).defaults
    distance = defaults.get("loss") == "self-adversarial"
    settings: dict[str, Any] = {
        "model": model, "dimension": dimension, "epochs": epochs, "seed": seed, "validate_every": 0,
        "schedule": "linear", "learning_rate": 0.01 if distance else 0.1,
    }  # fmt: skip
    if not distance:  # all entities as candidates would be a little better, and take many times as long
        settings |= {"candidates": "sampled", "negatives": 1024 if len(graph.train) <= SMALL else 256}
    everything = regime == "all noisy, as published"
    marks = EVERYTHING if everything else marks
    n = len(graph.train)
    confidential = max(1, n if everything else count(graph, marks))
    claimed = epsilon if epsilon is not None else published_epsilon(n, confidential, sigma, epochs)
    if regime in ("as published", "all noisy, as published"):
        batch = math.sqrt(n)
        settings |= {
            "mechanism": "touched",
            "noise_multiplier": sigma,
            "sample_rate": min(1.0, batch / confidential),
            "private_steps": max(1, round(epochs * confidential / batch)),
            "private_optimiser": defaults.get("optimiser", "adam"),
            "private_learning_rate": settings["learning_rate"],
            "private_parameters": "all",
            "prior": "none",
            "shrinkage": "none",
            "order": "interleaved",
            "clip_quantile": quantile,
            "delta": 1 / n,
        }
    elif regime == "dropped":
        settings["drop_confidential"] = True
    elif regime == "dropped, counted":  # unrestricted statements counted exactly, as «sound» does too
        settings |= {"drop_confidential": True, "prior": "marginals"}
    elif regime == "sound":
        settings |= {"epsilon": claimed, "delta": min(1 / n, 1e-3)}
    elif regime == "counts":
        settings = {"model": "marginals", "epsilon": claimed, "delta": min(1 / n, 1e-3), "seed": seed}
    return Job(folder, settings, marks, tuple(measures), more=more)


def over_seeds(
    cases: Sequence[tuple[Any, ...]], results: Mapping[str, dict[str, Any]]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The results of each case, all its seeds together; a case ends with its seed, and its label is itself as text."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for case in cases:
        found.setdefault(case[:-1], []).append(results[f"{case}"])
    return found


def mean(values: Sequence[float]) -> float:
    """The mean."""
    return statistics.fmean(values)


def summary(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and interval of the usual figures over seeds, and the ε that holds."""
    out: dict[str, Any] = {}
    for key in ("mrr", "hits@10", "mr"):
        values = [float(result[key]) for result in results]
        out[key], out[f"{key} ±"] = mean(values), interval(values)
    apart = [result["confidential"] for result in results if "confidential" in result]
    if len(apart) == len(results):
        values = [float(one["mrr"]) for one in apart]
        out["mrr confidential"], out["mrr confidential ±"] = mean(values), interval(values)
    if "chance_mrr" in results[0]:
        out["chance"] = mean([float(result["chance_mrr"]) for result in results])
    known = [result["epsilon"] for result in results]
    out["epsilon"] = None if any(value is None for value in known) else max(known)
    return out
