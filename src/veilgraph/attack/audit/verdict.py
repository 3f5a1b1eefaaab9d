"""Audit: does a training keep the ε it claims? Canaries in one training, or its steps taken one by one; a lower bound on ε, a verdict."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from veilgraph.account.epsilon import spent
from veilgraph.attack.audit.vectors import audit_vectors
from veilgraph.attack.audit.whitebox import audit_steps
from veilgraph.errors import ConfigError, PrivacyError
from veilgraph.load import Graph, load
from veilgraph.mark import mark
from veilgraph.run.run import Run
from veilgraph.train.loop import Listener

SEEN = 0.25  # of the claim: what an audit of steps must find to say anything


def audit(
    target: Run | Graph | str | Path,
    *,
    canaries: int = 1000,
    graph: Graph | str | Path | None = None,
    claim: float | None = None,
    steps: bool = False,
    listener: Listener | None = None,
    tell: Callable[[str], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """epsilon_lower_bound (95 %), epsilon_claimed, power, verdict (consistent | violated | inconclusive), canaries, mechanism_level.

    A run is trained again with its own settings, a graph with those given; the best of several trainings (``veil tune --epsilon``) is held
    against what one of them costs, which is less than the whole study (``claim_is_of``). ``claim`` overrides what the ledger claims,
    to test a claim made elsewhere. With ``steps`` the noisy sums themselves are audited, and the noisy counts: whoever sees them sees
    more than the vectors tell. ``power`` is the largest claim these canaries could have refuted: what they show where hardly anything is
    promised; where it is below half of the claim, the audit says nothing, and says so.

    Reads confidential data: as the training it audits. Releases: nothing; the result is for the curator.
    """
    if canaries < 10:
        raise ConfigError(f"an audit needs at least 10 canaries, found {canaries}.")
    if claim is not None and not 0 <= claim < math.inf:
        raise ConfigError(f"a claim is an ε, a number from 0 on; found {claim}.")
    if isinstance(target, Run):
        found = target.graph(graph)
        settings = {**{k: v for k, v in target.config.as_dict().items() if v is not None}, **settings}
        one_of_several = claim is None and "best_of" in target.facts
        claim = claim if claim is not None else _of_one_training(target)
    else:
        found, one_of_several = load(target), False
    if settings.get("epsilon") is None and settings.get("noise_multiplier") is None:
        raise PrivacyError(
            "there is no claim to audit: the training is not private. Give --epsilon, or a private run; for an ordinary "
            "run use veil attack membership."
        )
    if found.marks is None:
        found = found.with_marks(mark(found, everything=True))
    with tempfile.TemporaryDirectory() as folder:
        if steps:
            result = audit_steps(found, settings, canaries, claim, Path(folder), tell)
        else:
            result = audit_vectors(found, settings, canaries, claim, Path(folder), listener)
    return {
        **result,
        "claim_is_of": "one training of a study" if one_of_several else "the run",
        "verdict": verdict(result),
    }


def _of_one_training(run: Run) -> float | None:
    """The ε of what is trained again: of the best of several trainings, what one of them costs and not the whole study."""
    inside = [event["of"] for event in run.ledger.events if event["event"] == "selected"]
    if not inside:
        return run.epsilon
    epsilon = spent(inside, run.delta).epsilon
    return epsilon if math.isfinite(epsilon) else None


def verdict(found: dict[str, Any]) -> str:
    """violated, consistent or, where nothing of the kind could have been seen, inconclusive.

    Nothing is consistent with a promise that is not made.
    """
    claimed = found["epsilon_claimed"]
    if claimed is not None and found["epsilon_lower_bound"] > claimed:
        return "violated"
    if claimed is None or found["guarantee"] != "dp" or found["power"] < claimed / 2:
        return "inconclusive"
    if found["mechanism_level"] == "steps" and found["epsilon_lower_bound"] < claimed * SEEN:
        return "inconclusive"  # (what is sound comes close to its claim there, so the canaries are not seen)
    return "consistent"
