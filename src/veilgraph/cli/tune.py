"""veil tune GRAPH --model complex --trials 30 --out STUDY [--epsilon 2]"""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.cli.flags import add_settings, chosen_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("graph", help="a graph with a validation split")
    parser.add_argument(
        "--out", default="study", help="the study folder; the same folder goes on where it stopped"
    )
    parser.add_argument(
        "--trials",
        type=int,
        default=30,
        help="trials in all (default 30); with --epsilon, which tunes on confidential statements too, their mean number",
    )
    parser.add_argument(
        "--moved",
        action="store_true",
        help="with --epsilon: the study was moved or restored, and no other copy of it will go on",
    )
    add_settings(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Search."""
    from veilgraph.cli.terminal import note
    from veilgraph.tune.search import tune

    def report(trial: dict[str, Any]) -> None:
        score = f"MRR {trial['mrr']:.4f}" if trial["mrr"] is not None else trial["state"]
        if trial.get("score") is not None:
            score = f"noisy sum of reciprocal ranks {trial['score']:.1f}"
        chosen = ", ".join(
            f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}"
            for k, v in trial.items()
            if k not in ("trial", "state", "mrr", "score")
        )
        note(f"trial {trial['trial']}: {score} ({chosen or 'defaults'})")

    return tune(
        options.graph,
        out=options.out,
        trials=options.trials,
        moved=options.moved,
        report=report,
        **chosen_settings(options),
    )


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, note

    facts({**{k: v for k, v in result.items() if k != "settings"}, **result["settings"]})
    if "mrr" in result:
        note(
            "The best of several on the statements it was chosen by looks better than it is: train with these settings, then veil evaluate."
        )
    if "run" in result:
        facts({"its promise": f"veil certificate verify {result['run']}"})
    else:
        facts({"use them": f"veil train GRAPH --config {result['best']}"})
