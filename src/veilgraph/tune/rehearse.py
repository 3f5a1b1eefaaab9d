"""Before a budget is chosen: the same training rehearsed on unrestricted statements, at several ε.

Part of what is unrestricted plays the confidential part: as large a share of the relations as the marks make confidential,
or a share of the statements. What comes out says how much is lost at which ε, without reading a confidential statement
and without costing anything; beside it stands what an attacker could reach at most. Which relations stand in matters as much as ε:
so several play the part in turn, each with a seed of its own, and figures have intervals over them. The real graph has other
statements: a rehearsal, not a promise.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from veilgraph import __version__
from veilgraph.config import PRIVATE_ONLY
from veilgraph.errors import ConfigError, InputError, UsageError
from veilgraph.files import append_line, read_lines
from veilgraph.load import Graph, load, split
from veilgraph.load.marks import Marks
from veilgraph.mark import mark, may_be_confidential, unrestricted
from veilgraph.mark.units import unit_of
from veilgraph.rank.metrics import interval
from veilgraph.run.facts import marks_of
from veilgraph.train import train

FEWEST = 200  # unrestricted training statements: below this many nothing can be learnt from a rehearsal
JUDGED = 100  # stand-in test statements: below this many, figures are noise
OTHER = 1_000_003  # seeds of stand-ins: with those of the marks themselves what is left would hold none
TRIES = 20  # choices of relations that are looked at for one stand-in
AGAIN = 0.2  # of unrestricted statements that are held out anew, where those that are held out are too few
FIGURES = ("mrr", "hits@10", "mr")
DROPPED, COUNTED, OPEN = "confidential dropped", "confidential dropped, counted", "no privacy"


class Piece(NamedTuple):
    """One training of a rehearsal."""

    stage: int
    name: str
    settings: dict[str, Any]


def rehearse(
    graph: Graph | str | Path,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0),
    *,
    share: float = 0.5,
    stand_ins: int = 3,
    seed: int = 0,
    keep: str | Path | None = None,
    tell: Callable[[str], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """``rows`` (one per ε), and beside them ``dropped`` and ``no_privacy``: figures of the stand-in confidential statements.

    Rows may have counts, exact ones of unrestricted statements among them. So dropping is rehearsed with such counts too
    (``dropped_counted``), and ``gain`` is over the better of the two. ``rehearsed_unit`` is whose unit a stand-in has.

    Figures are means over ``stand_ins``, with 95 % intervals; a row's ``ceiling`` is how often an attacker is right at most,
    whatever he knows. What is done is kept in the file ``keep``, and a rehearsal that was stopped goes on there. ``share`` is
    used where the marks do not go by relation.

    Reads confidential data: none. Releases: figures about unrestricted statements.
    """
    graph = load(graph)
    if graph.marks is None:
        raise UsageError("nothing is marked: say what is confidential first, with veil mark.")
    if not epsilons or any(epsilon <= 0 for epsilon in epsilons):
        raise ConfigError(f"a budget is a positive number, found {list(epsilons)}.")
    if stand_ins < 1:
        raise ConfigError(f"a rehearsal needs one stand-in at least, found {stand_ins}.")
    stages: list[Graph] = []
    for number in range(stand_ins):
        stages.append(_stage(graph, share, seed + number, [_rules(stage) for stage in stages]))
    wanted = sorted(set(epsilons))
    ordinary = {key: value for key, value in settings.items() if key not in PRIVATE_ONLY}
    dropping = _dropping(settings)
    pieces = [
        piece
        for number in range(stand_ins)
        for piece in (
            *(Piece(number, name, {**ordinary, **more}) for name, more in dropping),
            Piece(number, OPEN, ordinary),
            *(Piece(number, f"ε = {epsilon:g}", {**settings, "epsilon": epsilon}) for epsilon in wanted),
        )
    ]
    done = _done(keep, graph, [[wanted, share, stand_ins, seed], settings])
    folder, began, taken = Path(tempfile.mkdtemp()), time.monotonic(), 0
    try:
        for number, piece in enumerate(pieces):
            if (piece.stage, piece.name) in done:
                continue
            if tell is not None:
                left = (time.monotonic() - began) / taken * (len(pieces) - number) if taken else None
                ahead = (
                    ""
                    if left is None
                    else f" (about {left / 60:.0f} min left)"
                    if left > 90
                    else f" (about {left:.0f} s left)"
                )
                tell(
                    f"{number + 1}/{len(pieces)}: {piece.name}, stand-in {piece.stage + 1} of {stand_ins}{ahead}"
                )
            found = _measured(stages[piece.stage], piece, folder / str(number), seed + piece.stage)
            done[piece.stage, piece.name] = found
            taken += 1
            if keep is not None:
                append_line(Path(keep), {"stage": piece.stage, "name": piece.name, **found})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _summary(done, stages, wanted, graph)


def _dropping(settings: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The ways of leaving confidential statements out: as asked, and with exact counts of the others, if that is another way."""
    plain: tuple[str, dict[str, Any]] = (DROPPED, {"drop_confidential": True})
    counted = settings.get("model") == "marginals" or settings.get("prior") == "marginals"
    if counted or settings.get("text") or settings.get("encoder"):  # (with text there are none)
        return [plain]
    return [plain, (COUNTED, {"drop_confidential": True, "prior": "marginals"})]


def _measured(stage: Graph, piece: Piece, out: Path, seed: int) -> dict[str, Any]:
    """The figures of one training."""
    run = train(stage, out=out, seed=seed, **piece.settings)
    found = run.evaluate("test", graph=stage)
    private = piece.settings.get("epsilon") is not None
    measured = {
        "spent": run.epsilon if private else None,
        "noise_multiplier": run.config.noise_multiplier if run.config.private_steps else None,
        "count_deviation": (run.config.prior_noise or 0.0) * 2**0.5 * run.facts["per_unit"] or None,
        "ceiling": run.certificate["attack_accuracy"] if private else None,
        "mu": run.certificate["mu"] if private else None,
        **{key: found["confidential"][key] for key in FIGURES},
        "all": {key: found[key] for key in FIGURES},
    }
    shutil.rmtree(out, ignore_errors=True)
    return measured


def _summary(
    done: dict[tuple[int, str], dict[str, Any]],
    stages: Sequence[Graph],
    epsilons: Sequence[float],
    graph: Graph,
) -> dict[str, Any]:
    count = len(stages)
    judged = sum(int(stage.secret("test").sum()) for stage in stages)

    def of(name: str) -> list[dict[str, Any]]:
        return [done[number, name] for number in range(count)]

    def row(name: str) -> dict[str, Any]:
        each = of(name)
        half = interval([one["mrr"] for one in each])
        means = {key: statistics.fmean(one[key] for one in each) for key in FIGURES}
        return {
            **means,
            "interval": None
            if half is None
            else [max(0.0, means["mrr"] - half), min(1.0, means["mrr"] + half)],
            "judged": judged,
            "each": [one["mrr"] for one in each],
            "all": {key: statistics.fmean(one["all"][key] for one in each) for key in FIGURES},
        }

    def private(epsilon: float) -> dict[str, Any]:
        first = of(f"ε = {epsilon:g}")[0]
        gains = [one["mrr"] - other["mrr"] for one, other in zip(of(f"ε = {epsilon:g}"), of(better))]
        half = interval(gains)
        own = {key: first[key] for key in ("spent", "noise_multiplier", "count_deviation", "ceiling", "mu")}
        gain = statistics.fmean(gains)
        return {
            "epsilon": epsilon,
            **row(f"ε = {epsilon:g}"),
            **own,
            "gain": gain,
            "gain_interval": None if half is None else [gain - half, gain + half],
        }

    ways = [name for name in (DROPPED, COUNTED) if (0, name) in done]
    better = max(ways, key=lambda name: statistics.fmean(one["mrr"] for one in of(name)))
    found = {
        "rows": [private(epsilon) for epsilon in epsilons],
        "dropped": row(DROPPED),
        "dropped_counted": row(COUNTED) if COUNTED in ways else None,
        "unit": graph.marks.unit if graph.marks is not None else "statement",
        "rehearsed_unit": stages[0].marks.unit if stages[0].marks is not None else "statement",
        "no_privacy": row(OPEN),
        "chance": float(np.mean(1 / np.arange(1, len(stages[0].entities) + 1))),
        "stand_in": [_rules(stage) for stage in stages],
        "statements": {
            "unrestricted": [int((~stage.secret("train")).sum()) for stage in stages],
            "stand_in": [int(stage.secret("train").sum()) for stage in stages],
            "judged": [int(stage.secret("test").sum()) for stage in stages],
        },
    }
    return {**found, "advice": advice(found)}


def advice(found: dict[str, Any]) -> str:
    """What a curator may take from it."""
    counted = found.get("dropped_counted")
    dropped, best = found["dropped"]["mrr"], found["no_privacy"]["mrr"]
    how = "--drop-confidential"
    if counted is not None and counted["mrr"] > dropped:
        dropped, how = counted["mrr"], "--drop-confidential --prior marginals"
    whole = f"MRR {dropped:.3f} without confidential statements, {best:.3f} with them as they are"
    if found["rows"][0]["gain_interval"] is None:
        return (
            f"One stand-in alone says nothing sure ({whole}): let several play the part, with --stand-ins 3."
        )
    if best <= dropped:
        return f"Even without privacy confidential statements add nothing here ({whole}): leave them out ({how})."
    sure = [row for row in found["rows"] if row["gain_interval"][0] > 0]
    if not sure:
        top = found["rows"][-1]
        return (
            f"At none of these ε is learning from confidential statements surely better than leaving them out ({whole}, "
            f"{top['mrr']:.3f} at ε = {top['epsilon']:g}): leave them out ({how}), which costs no ε at all, or ask for "
            "more ε than any of these."
        )
    row = sure[0]
    kept = 100 * row["gain"] / (best - dropped)
    reached = (
        ""
        if row["ceiling"] is None
        else (
            f", and whoever must tell whether one unit was in is right in {100 * row['ceiling']:.1f} % of cases at most (a coin: 50 %)"
        )
    )
    return (
        f"ε = {row['epsilon']:g} is the smallest of these that is surely better than leaving confidential statements out: it keeps about "
        f"{kept:.0f} % of what they add ({whole}, {row['mrr']:.3f} with this ε){reached}."
    )


def _done(keep: str | Path | None, graph: Graph, asked: list[Any]) -> dict[tuple[int, str], dict[str, Any]]:
    """What an earlier rehearsal of the same kind has measured; a file of another kind is begun anew."""
    if keep is None:
        return {}
    path = Path(keep)
    marks = marks_of(
        graph
    )  # unit, cap, and which relations may be confidential: stand-ins and prices follow from them
    told = json.dumps(
        [asked, marks, __version__, unrestricted(graph).fingerprint], sort_keys=True, default=str
    )
    kind = hashlib.sha256(told.encode()).hexdigest()
    lines = read_lines(path)
    if not lines or lines[0].get("rehearsal") != kind:
        path.unlink(missing_ok=True)
        append_line(path, {"rehearsal": kind})
        return {}
    return {
        (line["stage"], line["name"]): {k: v for k, v in line.items() if k not in ("stage", "name")}
        for line in lines[1:]
        if "name" in line
    }


def _rules(stage: Graph) -> list[dict[str, Any]]:
    """What stands in."""
    return [dict(rule) for rule in stage.marks.rules] if stage.marks is not None else []


def _stage(graph: Graph, share: float, seed: int, before: Sequence[list[dict[str, Any]]] = ()) -> Graph:
    """Unrestricted statements, part of which play the confidential part, with enough of them to judge by.

    Another part than ``before``, where there are enough: intervals over stand-ins that are the same would be too narrow.
    """
    public = unrestricted(graph)
    if len(public.train) < FEWEST:
        raise InputError(
            f"only {len(public.train):,} unrestricted statements to rehearse on; at least {FEWEST} are needed. "
            "Plan on a public graph that resembles yours."
        )
    whole = public.with_splits({"train": np.unique(public.triples, axis=0)})
    most, twice = 0, None
    for anew in (False, True):  # as the graph is split, if that leaves enough
        if not anew and not len(public.splits.get("test", ())):
            continue
        cut = split(whole, valid=0.05, test=AGAIN, seed=seed) if anew else public
        for turn in range(TRIES):
            found = cut.with_marks(_stand_in(graph, cut, share, seed + TRIES * turn))
            judged = int(found.secret("test").sum())
            if judged >= JUDGED and _rules(found) not in before:
                return found
            if judged >= JUDGED and twice is None:
                twice = found
            most = max(most, judged)
    if twice is not None:
        return twice
    raise InputError(
        f"at most {most} unrestricted test statements could stand in for confidential ones, and with fewer than {JUDGED} figures are "
        "noise. What helps: a larger --share (where marks go by statement), a graph with more unrestricted statements, or a public graph "
        "that resembles yours."
    )


def _stand_in(graph: Graph, public: Graph, share: float, seed: int) -> Marks:
    """Marks of the rehearsal: relations where the real marks go by relation, statements otherwise."""
    possible, rng = may_be_confidential(graph), np.random.default_rng(seed)
    unit, per_unit = (graph.marks.unit, graph.marks.per_unit) if graph.marks is not None else ("statement", 1)
    unit = unit_of(unit).stand_in or unit
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
