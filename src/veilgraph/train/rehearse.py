"""Before a budget is chosen: the same training rehearsed on unrestricted statements, at several ε.

Part of what is unrestricted plays the confidential part: as large a share of the relations as the marks make confidential,
or a share of the statements. What comes out says how much is lost at which ε, without reading a confidential statement
and without costing anything. The real graph has other statements: a rehearsal, not a promise.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.config import PRIVATE_ONLY
from veilgraph.errors import InputError, UsageError
from veilgraph.load import Graph, load, split
from veilgraph.load.marks import Marks
from veilgraph.mark import mark, may_be_confidential, unrestricted
from veilgraph.train import train

FEWEST = 200  # unrestricted training statements: below this many nothing can be learnt from a rehearsal
OTHER = 1_000_003  # seeds of stand-ins: with those of the marks themselves what is left would hold none
FIGURES = ("mrr", "hits@10", "mr")


def rehearse(
    graph: Graph | str | Path,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0),
    *,
    share: float = 0.5,
    seed: int = 0,
    tell: Callable[[str], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """``rows`` (one per ε), and beside them ``dropped`` and ``no_privacy``: figures of the stand-in confidential statements.

    Reads confidential data: none. Releases: figures about unrestricted statements. ``share`` is used where the marks do
    not go by relation.
    """
    graph = load(graph)
    if graph.marks is None:
        raise UsageError("nothing is marked: say what is confidential first, with veil mark.")
    if not epsilons or any(epsilon <= 0 for epsilon in epsilons):
        raise UsageError(f"a budget is a positive number, found {list(epsilons)}.")
    public = unrestricted(graph)
    if len(public.train) < FEWEST:
        raise InputError(
            f"only {len(public.train):,} unrestricted statements to rehearse on; at least {FEWEST} are needed. "
            "Plan on a public graph that resembles yours."
        )
    if not len(public.splits.get("test", ())):
        public = split(public.with_splits({"train": public.train}), valid=0.05, test=0.1, seed=seed)
    stage = public.with_marks(_stand_in(graph, public, share, seed))
    folder = Path(tempfile.mkdtemp())

    def measured(name: str, **more: Any) -> dict[str, Any]:
        if tell is not None:
            tell(name)
        chosen = {**settings, **more}
        if "epsilon" not in more:
            chosen = {key: value for key, value in chosen.items() if key not in PRIVATE_ONLY}
        run = train(stage, out=folder / name.replace(" ", "-"), seed=seed, **chosen)
        found = run.evaluate("test", graph=stage)
        if "confidential" not in found:
            raise InputError(
                f"none of the {len(stage.splits['test']):,} unrestricted test statements stands in for a confidential one, so nothing "
                "would be learnt from a rehearsal. Load the graph with a larger --test, or plan on a public graph that resembles yours."
            )
        part = found["confidential"]
        return {
            "epsilon": run.epsilon if more.get("epsilon") else None,
            "noise_multiplier": run.config.noise_multiplier if run.config.private_steps else None,
            "count_deviation": (run.config.prior_noise or 0.0) * 2**0.5 * run.facts["per_unit"] or None,
            **{key: part[key] for key in FIGURES},
            "all": {key: found[key] for key in FIGURES},
        }

    try:
        rows = [
            {**measured(f"ε = {epsilon:g}", epsilon=epsilon), "budget": epsilon}
            for epsilon in sorted(epsilons)
        ]
        return {
            "rows": rows,
            "dropped": measured("confidential dropped", drop_confidential=True),
            "no_privacy": measured("no privacy"),
            "stand_in": [dict(rule) for rule in stage.marks.rules] if stage.marks is not None else [],
            "statements": {
                "unrestricted": int((~stage.secret("train")).sum()),
                "stand_in": int(stage.secret("train").sum()),
                "judged": int(stage.secret("test").sum()),
            },
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stand_in(graph: Graph, public: Graph, share: float, seed: int) -> Marks:
    """Marks of the rehearsal: relations where the real marks go by relation, statements otherwise."""
    possible, rng = may_be_confidential(graph), np.random.default_rng(seed)
    unit = graph.marks.unit if graph.marks is not None else "statement"
    per_unit = graph.marks.per_unit if graph.marks is not None else 1
    unit = unit if unit in ("statement", "head") else "head"
    if possible.all():
        return mark(public, random_share=share, seed=OTHER + seed, unit=unit, per_unit=per_unit)
    learnt, judged = (
        np.bincount(public.splits[name][:, 1], minlength=len(public.relations)) for name in ("train", "test")
    )
    seen = np.flatnonzero((learnt > 0) & (judged > 0) & ~possible)
    wanted = max(1, round(len(seen) * possible.sum() / len(possible)))
    if wanted >= len(seen):
        return mark(public, random_share=share, seed=OTHER + seed, unit=unit, per_unit=per_unit)
    chosen = rng.choice(seen, wanted, replace=False)
    names = [public.relations[i] for i in sorted(chosen)]
    return mark(public, relations=names, unit=unit, per_unit=per_unit)
