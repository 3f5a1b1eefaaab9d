"""AUC and true positives at few false alarms, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

RATES = (0.01, 0.001)


def measure(score: np.ndarray, member: np.ndarray, seed: int = 0, resamples: int = 400) -> dict[str, Any]:
    """auc and tpr@fpr=… with 95 % bootstrap intervals; larger scores mean «member».

    Example: members 3, 2 and non-members 1, 2 give an AUC of (1 + 1 + 1 + ½)/4 = 0.875.
    """
    inside, outside = np.sort(score[member]), np.sort(score[~member])
    rng = np.random.default_rng(seed)
    found = _once(inside, outside)
    drawn = [
        _once(np.sort(rng.choice(inside, len(inside))), np.sort(rng.choice(outside, len(outside))))
        for _ in range(resamples)
    ]
    out: dict[str, Any] = dict(found)
    for name in found:
        values = [d[name] for d in drawn]
        out[f"{name}_interval"] = [float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))]
    out["roc"] = _curve(inside, outside)
    return out


def auc(score: np.ndarray, member: np.ndarray) -> float:
    """The AUC alone."""
    return _once(np.sort(score[member]), np.sort(score[~member]))["auc"]


def _curve(inside: np.ndarray, outside: np.ndarray, points: int = 60) -> list[list[float]]:
    """False alarms and members found, at thresholds from the strictest to the laxest."""
    rates = np.unique(np.r_[0, np.geomspace(1e-3, 1, points // 2), np.linspace(0, 1, points // 2)])
    allowed = np.floor(rates * len(outside)).astype(int)
    ordered = outside[::-1]
    found = []
    for count in np.unique(allowed):
        threshold = ordered[count] if count < len(ordered) else -np.inf
        found.append([float((outside > threshold).mean()), float((inside > threshold).mean())])
    return [*found, [1.0, 1.0]]


def _once(inside: np.ndarray, outside: np.ndarray) -> dict[str, float]:
    below = np.searchsorted(outside, inside, "left")
    upto = np.searchsorted(outside, inside, "right")
    out = {"auc": float((below + upto).mean() / 2 / len(outside))}
    for rate in RATES:
        allowed = int(np.floor(rate * len(outside)))
        threshold = outside[len(outside) - 1 - allowed]
        out[f"tpr@fpr={rate:g}"] = float((inside > threshold).mean())
    return out
