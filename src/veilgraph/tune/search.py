"""Search over a model's own space, resumable: ``tune(graph, model="complex", trials=30, out="study/")``.

Each trial trains with early stopping and is judged by validation MRR; poor ones are cut short. Trials are kept in a
SQLite file, so a killed study goes on where it stopped; the best settings end up in best.yaml. It reads unrestricted
statements only and costs nothing. With ``epsilon`` confidential ones are tuned on too, charged: see ``trials.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from veilgraph import models
from veilgraph.config import TrainConfig
from veilgraph.disk import explained
from veilgraph.errors import ConfigError, InputError, MissingExtraError, UsageError
from veilgraph.files import write_text
from veilgraph.load import Graph, load
from veilgraph.mark import unrestricted
from veilgraph.models.base import SearchSpace
from veilgraph.train import complete_config
from veilgraph.train.loop import Progress
from veilgraph.train.session import run_training
from veilgraph.train.tuned import carried
from veilgraph.tune.trials import tune_privately

STUDY = "study.sqlite"


def tune(
    graph: Graph | str | Path,
    *,
    out: str | Path,
    trials: int = 30,
    moved: bool = False,
    report: Callable[[dict[str, Any]], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Search until ``trials`` are done in all; returns the best settings and their validation MRR.

    Reads confidential data: none; a marked graph is tuned on its unrestricted statements alone, which costs nothing.
    Releases: settings and a metric. With ``epsilon``: see ``tune_privately``; ``trials`` is then a mean, and ``moved`` says of a study
    whose folder was moved that no other copy goes on.
    """
    base = TrainConfig.of(settings)
    if trials < 1 or base.epochs == 0 or base.validate_every == 0:
        raise ConfigError("tuning needs at least one trial, one epoch and a validation.")
    if base.private:
        return tune_privately(load(graph), base, Path(out), trials, report, moved=moved)
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("veil tune", "tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    loaded = load(graph)
    graph, found_on = unrestricted(loaded), carried(base, loaded)
    if not len(graph.splits.get("valid", ())):
        raise InputError(
            "tuning needs a validation split: load the graph with --split random, or name one with valid.tsv."
        )
    space = models.model_class(base.model).search_space
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not (folder / STUDY).exists():
        raise UsageError(f"{folder} exists already and is no study. Choose another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    with explained(folder / STUDY):
        study = optuna.create_study(
            storage=f"sqlite:///{folder / STUDY}",
            study_name=_study_name(base, graph),
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1),
        )
    if not study.trials:
        with explained(folder / STUDY):
            study.enqueue_trial(_defaults(base, graph, space))
    study.sampler = optuna.samplers.TPESampler(seed=base.seed + len(study.trials), n_startup_trials=8)

    def objective(trial: Any) -> float:
        chosen = {key: _suggest(trial, key, space[key]) for key in space if base.open(key)}
        config, _ = complete_config(graph, {**base.as_dict(), **chosen})

        def listener(progress: Progress) -> None:
            if progress.mrr is not None and progress.step == progress.steps:
                trial.report(progress.mrr, progress.epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned

        state, _ = run_training(graph, config, listener=listener)
        trial.set_user_attr("seconds", round(state.seconds, 1))
        return state.best_mrr

    def tell(study: Any, trial: Any) -> None:
        if report is not None:
            report(
                {"trial": trial.number, "state": trial.state.name.lower(), "mrr": trial.value, **trial.params}
            )

    done = sum(t.state.is_finished() for t in study.trials)
    if trials > done:
        with explained(folder / STUDY):
            study.optimize(objective, n_trials=trials - done, callbacks=[tell], catch=(InputError,))
    if not any(t.state.name == "COMPLETE" for t in study.trials):
        raise InputError("no trial ended with a usable model: every training diverged. Narrow the settings.")
    best = {**{k: v for k, v in base.as_dict().items() if v is not None}, **study.best_params}
    best.pop("threads", None)
    best["tuned_on"] = found_on
    write_text(folder / "best.yaml", yaml.safe_dump(best, sort_keys=False))
    done = sum(t.state.is_finished() for t in study.trials)
    return {
        "model": base.model,
        "trials": done,
        "mrr": study.best_value,
        "mrr_is": f"the best of {done} trials on the {len(graph.splits['valid']):,} validation statements they were chosen by",
        "settings": {**study.best_params, "tuned_on": found_on},
        "best": str(folder / "best.yaml"),
    }


def _study_name(base: TrainConfig, graph: Graph) -> str:
    """One study per graph and fixed settings: others must not be mixed in."""
    fixed = {k: v for k, v in base.as_dict().items() if k != "threads"}
    digest = hashlib.sha256(f"{graph.fingerprint} {sorted(fixed.items())}".encode()).hexdigest()
    return f"{base.model}-{digest[:16]}"


def _defaults(base: TrainConfig, graph: Graph, space: SearchSpace) -> dict[str, Any]:
    """What an untuned training would use, as far as the space allows it: the first trial."""
    complete = complete_config(graph, base)[0].as_dict()
    inside = {
        k: v in s if isinstance(s, list) else s[0] <= complete[k] <= s[1]
        for k, s in space.items()
        for v in [complete[k]]
    }  # type: ignore[operator]
    return {k: complete[k] for k in space if inside[k]}


def _suggest(trial: Any, key: str, space: Any) -> Any:
    if isinstance(space, list):
        return trial.suggest_categorical(key, space)
    low, high, scale = space
    return trial.suggest_float(key, low, high, log=scale == "log")
