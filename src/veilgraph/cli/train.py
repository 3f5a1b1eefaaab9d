"""veil train GRAPH --model complex --out RUN"""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.cli.flags import add_settings, chosen_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("graph", help="a saved graph folder, or anything veil load can read")
    parser.add_argument("--out", help="the run folder (default: MODEL-run beside you)")
    parser.add_argument(
        "--checkpoint-seconds", type=float, default=20.0, help="seconds between checkpoints (default 20)"
    )
    add_settings(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Train and summarise."""
    from veilgraph.cli.terminal import TrainingProgress, note
    from veilgraph.load import load
    from veilgraph.train import train

    settings = chosen_settings(options)
    graph = load(options.graph)
    out = options.out or f"{settings.get('model', 'complex').replace(':', '-')}-run"
    progress = TrainingProgress()
    finished = train(
        graph,
        out=out,
        listener=progress,
        explain=note,
        checkpoint_seconds=options.checkpoint_seconds,
        **settings,
    )
    progress.close()
    return summary(finished)


def summary(finished: Any) -> dict[str, Any]:
    """What a training is reported by."""
    from veilgraph.train.loop import judged

    trace = finished.trace
    seconds = sum(line["seconds"] for line in trace)
    best = max((line["valid_mrr"] for line in trace if "valid_mrr" in line), default=None)
    config = finished.config
    return {
        "run": str(finished.folder),
        "model": config.model,
        "epochs": max((line["epoch"] for line in trace), default=0),
        "steps": trace[-1]["steps"] if trace else 0,
        "seconds": round(seconds, 3),
        "positives_per_second": round(
            sum(line["positives_per_second"] * line["seconds"] for line in trace) / seconds, 1
        )
        if seconds
        else 0.0,
        "valid_mrr": best,
        "valid_of": judged(config) if best is not None else None,
        "epsilon": finished.epsilon,
        "delta": config.delta if config.private else None,
        "guarantee": finished.guarantee,
        "mechanism": config.mechanism if config.private else None,
        "unit": finished.facts["unit"] if config.private else None,
        "noise_multiplier": config.noise_multiplier,
        "sample_rate": config.sample_rate if config.private else None,
        "clip_norm": finished.clip_norm,
        "private_steps": _taken(finished) if config.private else None,
        "private_steps_planned": config.private_steps if config.private else None,
    }


def _taken(finished: Any) -> int:
    """Private steps that the ledger charges."""
    from veilgraph.account.events import is_pure

    taken = [event for event in finished.ledger.events if event["event"] == "repeated" and not is_pure(event)]
    return sum(int(event["times"]) for event in taken)


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, note

    shown = {k: v for k, v in result.items() if k not in ("run", "private_steps_planned") and v is not None}
    facts(shown, f"run {result['run']}")
    planned = result.get("private_steps_planned")
    if planned and result["private_steps"] < planned:
        note(
            f"The budget allowed {result['private_steps']:,} of {planned:,} private steps with this noise. A larger --epsilon or "
            "--noise-multiplier, or leaving the latter out, allows all of them."
        )
