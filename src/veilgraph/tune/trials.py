"""Tuning that is charged: the best of a random number of private trainings, judged by a noisy figure on confidential
validation statements.

Running a private training once more, with other settings, is another look at the confidential statements. But if the
number of looks is random, the trials are independent and alike, and nothing is told but the best of them, the whole costs
little more than one (Papernot & Steinke 2022, «Hyperparameter Tuning with Renyi Differential Privacy»): see
``account.events.selected``. So every trial

    draws its settings from fresh entropy — never from the seed, nor from what other trials found;
    spends the same: what it may search leaves noise, rate and number of steps alone;
    starts anew if it is killed: what was half done is thrown away unseen;

and the budget is charged before the first of them. The losers are deleted, the winner becomes STUDY/run.

    STUDY/ledger.jsonl   what was charged          STUDY/study.json   for the curator: the number of trials and their scores
    STUDY/run/           the winner, certified     STUDY/trial-7/     for the curator, only while the study goes on
"""

from __future__ import annotations

import fcntl
import json
import math
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph import machine, models
from veilgraph.account.calibrate import calibrate
from veilgraph.account.epsilon import DELTA
from veilgraph.account.events import Event, gaussian, selected, together
from veilgraph.account.ledger import Ledger
from veilgraph.account.prices import Asked
from veilgraph.account.promise import NUMBER, PRIOR_SHARE
from veilgraph.config import TrainConfig
from veilgraph.disk import allowed
from veilgraph.errors import DivergedError, InputError, PrivacyError, RunError, UsageError, VerificationError
from veilgraph.files import append_line, read_lines, write_json, write_text
from veilgraph.layout import CERTIFICATE, CONFIG, LEDGER, OPEN, TRACE, draft_of
from veilgraph.load import Graph
from veilgraph.mark import mark, unrestricted
from veilgraph.mark.units import capped, units
from veilgraph.noise.gauss import source
from veilgraph.noise.measure import Meter
from veilgraph.rank.ranking import Ranker
from veilgraph.run.curator import only_one, place_of
from veilgraph.run.facts import bind
from veilgraph.run.run import Run
from veilgraph.run.verify import certify
from veilgraph.train import train
from veilgraph.train.private.begin import counted_units, promise_of
from veilgraph.train.private.defaults import settled_defaults

STUDY, TRIAL, RUN, LOCK = "study.json", "trial", "run", "lock"
KEYS = {"asked", "event", "settings", "space", "score_noise", "trials", "scores", "ledger"}
SCORE_SHARE = 0.1  # of a trial's budget (in zero-concentrated terms) for its score
NOT_CERTAIN = (
    "select",
    "select-as-published",
    "touched",
    "respond",
)  # mechanisms that may fail, or promise nothing
SPACE: dict[str, Any] = {  # beside the model's own, where private steps are taken
    "clip": (0.1, 10.0, "log"),
    "private_learning_rate": (0.003, 1.0, "log"),
    "private_negatives": [16, 64, 256],
}
Report = Callable[[dict[str, Any]], None]


def tune_privately(
    graph: Graph,
    base: TrainConfig,
    out: Path,
    mean: float,
    report: Report | None = None,
    *,
    moved: bool = False,
) -> dict[str, Any]:
    """Go on with the study of a folder until its (random) number of trials is done; returns the winner's settings and run. A study that
    was copied does not go on, unless ``moved`` says that no other copy will.

    Reads confidential data: training and validation statements, in every trial. Releases: STUDY/run — settings, vectors
    and a noisy score — for the budget on STUDY's ledger. Everything else in the folder is the curator's.
    """
    if graph.marks is None:
        graph = graph.with_marks(mark(graph, everything=True))
    _refuse(graph, base)
    there = {path.name for path in out.iterdir() if draft_of(path.name) != STUDY} if out.is_dir() else set()
    if (out.exists() and not out.is_dir()) or (STUDY not in there and there - {LEDGER, LOCK}):
        raise UsageError(f"{out} exists already and is no study. Choose another folder.")
    out.mkdir(parents=True, exist_ok=True)
    with _locked(out):
        if (out / RUN).is_dir():
            _forget(out, _read(out)["trials"])
            raise RunError(
                f"{out} is finished: {out / RUN} is the best of its trials. Take another folder for another study."
            )
        study = _begin(graph, base, out, mean, moved=moved)
        meter = Meter(Ledger(out / LEDGER), source(secure=base.secure_noise))
        while len(study["scores"]) < study["trials"]:
            number = len(study["scores"])
            settings = {**study["settings"], **_draw(study["space"], meter.coins())}
            meter.paid(study["event"]["of"]["all"][1])  # its score: the study paid for every trial
            found = _trial(graph, settings, out / f"{TRIAL}-{number}", study["score_noise"], meter)
            study["scores"].append(found)
            _keep(out, study)
            if report is not None:
                chosen = {key: settings[key] for key in study["space"]}
                report({"trial": number, "state": "done", "mrr": None, "score": found, **chosen})
        return _publish(out, study, graph)


def _refuse(graph: Graph, base: TrainConfig) -> None:
    """Raise for what the bound does not cover."""
    if base.insecure_noise_seed is not None or base.mechanism in NOT_CERTAIN:
        raise PrivacyError(
            "the best of several trainings keeps its promise only if each of them keeps its own with certainty: "
            "not with a seeded noise, nor with mechanism select or touched. Use lazy, dense or adafest."
        )
    if base.clip_quantile is not None or base.noise_multiplier is not None or base.prior_noise is not None:
        raise UsageError(
            "every trial must cost the same, and the clip is searched for: leave out --clip-quantile, "
            "--noise-multiplier and --prior-noise."
        )
    if base.epsilon is None:
        raise UsageError("charged tuning needs a budget: --epsilon.")
    if not len(graph.splits.get("valid", ())):
        raise InputError(
            "tuning needs a validation split: load the graph with --split random, or name one with valid.tsv."
        )


def _begin(graph: Graph, base: TrainConfig, out: Path, mean: float, *, moved: bool) -> dict[str, Any]:
    """The study as it was left, or a new one: its number of trials drawn, its budget charged."""
    ledger = Ledger(out / LEDGER)
    asked = {
        "settings": base.with_values(threads=None).as_dict(),
        "mean": float(mean),
        "graph": graph.fingerprint,
        "marks": graph.marks.fingerprint if graph.marks is not None else None,  # unit and cap included
    }
    charged = any(event["event"] == "selected" for event in ledger.events)
    if not (out / STUDY).is_file():
        if charged:
            raise RunError(
                f"{out / STUDY} is gone: how many trials were paid for cannot be drawn again. Take another folder."
            )
        study = _plan(graph, base, ledger, mean) | {"asked": asked, "ledger": None}
        study |= {"training": secrets.token_hex(8), "place": place_of(out, LOCK)}
        _keep(out, study)
    study = _read(out)
    if study["asked"] != asked:
        raise RunError(
            f"{out} holds a study of another graph, other marks or of other settings. Take another folder."
        )
    _require_in_place(out, study, ledger, moved=moved)
    if study["ledger"] is None and not study["scores"]:
        if not charged:
            named = {key: study[key] for key in ("training",) if key in study}
            ledger.charge(study["event"], "the best of a random number of trainings", **named)
        study["ledger"] = ledger.mark
        _keep(out, study)
    if not ledger.continues(study["ledger"]):
        raise VerificationError(f"{out / LEDGER} is not the one this study began with. Take another folder.")
    return study


def _require_in_place(out: Path, study: dict[str, Any], ledger: Ledger, *, moved: bool) -> None:
    """Raise if the study is a copy: each would have a winner, certified for what one of them spent. (Of 0.3 none knows its place.)"""
    if not ledger.lines:
        raise VerificationError(f"{out / LEDGER} is not the one this study began with. Take another folder.")
    here = place_of(out, LOCK)
    known = {line["training"] for line in ledger.lines if "training" in line} - {study.get("training")}
    if known or ("training" in study) != ("place" in study):
        raise RunError(
            f"{out / STUDY} is damaged: it is not the study that was charged. Take another folder."
        )
    if study.get("place", here) != here:
        only_one(ledger, out, "study", "veil tune … --moved, with all else as before", moved=moved)
        study["place"] = here
        _keep(out, study)


def _keep(out: Path, study: dict[str, Any]) -> None:
    """Write the study down; it is for the curator alone."""
    write_json(out / STUDY, study, mode=0o600)


def _read(out: Path) -> dict[str, Any]:
    try:
        study: dict[str, Any] = json.loads((out / STUDY).read_text(encoding="utf-8"))
        if not set(study) >= KEYS:
            raise ValueError(f"it lacks {', '.join(sorted(KEYS - set(study)))}")
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"{out / STUDY} is damaged ({error}): the study cannot go on. Take another folder."
        ) from None
    return study


def _forget(out: Path, trials: int) -> None:
    """Delete the trials: nothing but the best may be kept."""
    for name in [*range(trials), "draft"]:
        shutil.rmtree(out / f"{TRIAL}-{name}", ignore_errors=True)


def _plan(graph: Graph, base: TrainConfig, ledger: Ledger, mean: float) -> dict[str, Any]:
    """What every trial has in common, what is searched, and how many there will be.

    Reads confidential data: the number of units. Releases: that number with noise, charged before it is drawn.
    """
    public = unrestricted(graph)
    base = base.with_values(threads=machine.prepare(base.threads))
    count = counted_units(graph, base, ledger, NUMBER)
    config, _ = settled_defaults(graph, public, base, count)
    space: dict[str, Any] = {}
    if len(public.train):
        space |= models.model_class(config.model).search_space
    if config.private_steps:
        space |= SPACE
    space = {key: value for key, value in space.items() if base.open(key)}
    if not space:
        raise UsageError(
            "there is nothing to search: with all of the budget in noisy counts no setting is left open. Ask for private "
            "steps (--private-steps), or train without tuning."
        )
    budget, delta = float(config.epsilon or 1), DELTA if config.delta is None else config.delta

    number = gaussian(NUMBER.multiplier)

    def one(noise: float) -> list[Event]:
        return [*ledger.events, selected(mean, together(number, gaussian(noise)))]

    alone = calibrate(one, budget, delta)
    score = alone / math.sqrt(SCORE_SHARE)
    parts: list[Event] = [number, gaussian(score)]
    if config.prior == "marginals":
        share = (PRIOR_SHARE if config.private_steps else 1.0) * (1 - SCORE_SHARE)
        config = config.with_values(prior_noise=alone / math.sqrt(share))
        parts.append(together(gaussian(config.prior_noise or 1.0)))  # however it is divided among releases

    def event(noise: float) -> Event:
        promise = replace(promise_of(graph, config, count), noise_multiplier=noise)
        return selected(mean, together(*parts, *promise.steps_between(0, promise.steps)))

    noise = 1.0
    if config.private_steps:
        noise = calibrate(lambda value: [*ledger.events, event(value)], budget, delta)
    config = config.with_values(noise_multiplier=noise)
    settings = {
        key: value for key, value in config.as_dict().items() if value is not None and key not in space
    }
    return {
        "event": event(noise),
        "settings": settings,
        "space": space,
        "score_noise": score,
        "trials": draw_number(mean, source(secure=base.secure_noise).coins()),
        "scores": [],
    }


def draw_number(mean: float, rng: np.random.Generator) -> int:
    """How many trials: logarithmic, with this mean (at most: the bound grows with it)."""
    if mean <= 1:
        return 1
    low, high = 1e-12, 1.0  # of γ: the smaller, the more trials
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if (1 / middle - 1) / -math.log(middle) < mean else (middle, high)
    return int(rng.logseries(1 - high))


def _draw(space: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Settings of a trial: each one by itself, from fresh entropy."""
    drawn: dict[str, Any] = {}
    for key, choices in space.items():
        if len(choices) == 3 and choices[2] in ("log", "linear"):
            low, high, scale = choices
            drawn[key] = (
                math.exp(rng.uniform(math.log(low), math.log(high)))
                if scale == "log"
                else rng.uniform(low, high)
            )
        else:
            drawn[key] = choices[int(rng.integers(len(choices)))]
    return drawn


def _trial(
    graph: Graph, settings: dict[str, Any], folder: Path, multiplier: float, meter: Meter
) -> float | None:
    """Train with these settings and score what comes of it; None if nothing does (a training that diverges, by its loss on
    unrestricted statements). A trial by itself promises nothing, and its ledger says so."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        run = train(graph, out=folder, one_of_several=True, **settings)
    except DivergedError:
        return None
    return noisy_score(run, graph, multiplier, meter)


def noisy_score(run: Run, graph: Graph, multiplier: float, meter: Meter) -> float:
    """The sum of reciprocal ranks of confidential validation statements, with noise.

    Sensitivity: a statement adds at most 1 (the mean of its two sides), a unit at most m, and nothing changes the ranks of
    others: they are filtered by unrestricted statements only, and a score that is no number ranks last.

    Reads confidential data: validation statements. Releases: the noisy sum, charged with the study.
    """
    per_unit = graph.marks.per_unit if graph.marks is not None else 1
    total = np.array([reciprocal_ranks(run, graph, meter.coins())])
    return float(meter.measure(Asked(float(per_unit), multiplier))[0].on(total)[0])


def reciprocal_ranks(run: Run, graph: Graph, rng: np.random.Generator) -> float:
    """The sum without its noise; at most m statements of a unit."""
    per_unit = graph.marks.per_unit if graph.marks is not None else 1
    statements = graph.split("valid")[graph.secret("valid")]
    statements = statements[capped(units(graph, "valid"), per_unit, rng)]
    if not len(statements):
        return 0.0
    ranker = Ranker(unrestricted(graph).triples, len(graph.relations))
    ranks = ranker.rank(
        run.model, run.parameters, statements, reciprocal=bool(run.config.reciprocal), steady=True
    )
    return float((1 / ranks.rank).sum() / 2)


def _publish(out: Path, study: dict[str, Any], graph: Graph) -> dict[str, Any]:
    """Make the best trial the study's run, under the study's ledger, and forget the others."""
    scores = [score if score is not None else -math.inf for score in study["scores"]]
    if max(scores) == -math.inf:
        raise InputError(
            f"no trial ended with a usable model: every training diverged. The budget of {out} is spent. Narrow the settings."
        )
    best = int(np.argmax(scores))
    winner, draft = out / f"{TRIAL}-{best}", out / f"{TRIAL}-draft"
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(winner, draft, ignore=shutil.ignore_patterns(LEDGER, CERTIFICATE, TRACE))
    ledger = Ledger(draft / LEDGER)
    for line in Ledger(out / LEDGER).lines:
        ledger.charge(**{key: value for key, value in line.items() if key != "charge"}, event=line["charge"])
    run = Run.open(draft)
    facts = {**run.facts, "best_of": study["asked"]["mean"], "score_noise": study["score_noise"]}
    if "training" in study:  # not the trial's: winners of a study that went on in two places name the same
        facts["training"] = study["training"]
    write_text(draft / CONFIG, bind(ledger, run.config, facts, score=scores[best]))
    paid = ledger.spent(run.delta).epsilon  # all of it before the first step
    for line in read_lines(winner / TRACE):
        append_line(draft / TRACE, {**line, "epsilon": paid})
    promise = certify(Run.open(draft), graph)
    draft.chmod(allowed(OPEN))  # (a trial by itself promises nothing, and was closed)
    draft.replace(out / RUN)
    _forget(out, study["trials"])
    chosen = {key: getattr(run.config, key) for key in study["space"]}
    return {
        "model": run.config.model,
        "mean_trials": study["asked"]["mean"],
        "score": max(
            scores[best], 0.0
        ),  # (how many statements it is of is confidential: no other bound may be said)
        "score_is": "the largest of the noisy scores of all trials, no estimate of how good the winner is",
        "score_deviation": study["score_noise"] * int(run.facts["per_unit"]),
        "epsilon": promise["epsilon"],
        "delta": promise["delta"],
        "settings": chosen,
        "run": str(out / RUN),
    }


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Hold the study for this process: two of them would do more trials than were drawn."""
    with (out / LOCK).open("a") as file:  # (is never written: it tells where the study began)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"{out} is being tuned by another process. Wait for it, or stop it.") from None
        yield
