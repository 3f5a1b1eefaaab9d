"""veil audit RUN · veil audit RUN --steps · veil audit GRAPH --epsilon 1 --mechanism lazy"""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.cli.flags import add_settings, chosen_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("target", help="a private run (trained again with canaries), or a graph")
    parser.add_argument(
        "--canaries", type=int, default=1000, help="units that are in or out by coins (default 1000)"
    )
    parser.add_argument("--graph", help="the run's graph, if it has moved")
    parser.add_argument(
        "--claim", type=float, metavar="EPSILON", help="test this claim instead of the ledger's"
    )
    parser.add_argument(
        "--steps",
        action="store_true",
        help="audit the noisy sums and counts themselves, one by one: sees more than the vectors tell, and is quicker",
    )
    add_settings(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Train with canaries and judge."""
    from pathlib import Path

    from veilgraph.attack.audit import audit
    from veilgraph.cli.terminal import TrainingProgress, note
    from veilgraph.layout import CONFIG
    from veilgraph.run.run import Run

    target = Run.open(options.target) if (Path(options.target) / CONFIG).is_file() else options.target
    if options.steps:
        note(
            f"Taking steps and counts one by one with {options.canaries:,} canaries, each in by a fresh coin …"
        )
    else:
        note(f"Training once with {options.canaries:,} canaries, each in by a fair coin …")
    progress = TrainingProgress()
    found = audit(
        target,
        canaries=options.canaries,
        graph=options.graph,
        claim=options.claim,
        steps=options.steps,
        listener=progress,
        tell=note,
        **chosen_settings(options),
    )
    progress.close()
    return found


def exit_code(result: dict[str, Any]) -> int:
    """5 if the claim was refuted."""
    return 5 if result["verdict"] == "violated" else 0


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.account.statement import rounded_up
    from veilgraph.cli.terminal import facts, out

    parts = {k: result.pop(k) for k in ("steps", "counts") if result.get(k) is not None}
    facts({k: v for k, v in result.items() if v is not None}, f"audit: {result['verdict']}")
    for name, part in parts.items():
        facts({k: v for k, v in part.items() if v is not None}, f"{name}: in units of what is charged")
    if result["epsilon_claimed"] is None:
        words = "There is no claim to hold the bound against."
    elif result["verdict"] == "inconclusive" and result["guarantee"] != "dp":
        words = (
            f"Nothing was refuted above ε = {result['epsilon_lower_bound']:.2f}, but this mechanism keeps no ε at all: whoever looks "
            "longer may find more."
        )
    elif result["verdict"] == "inconclusive":
        words = (
            f"This audit could have refuted no claim above ε = {result['power']:.2f}, whatever was wrong, and the claim is "
            f"{rounded_up(result['epsilon_claimed'], 2)}: it says nothing. Take more --canaries, or --steps."
        )
    elif result["verdict"] == "violated":
        words = (
            f"With 95 % confidence ε is at least {result['epsilon_lower_bound']:.2f}: the claim of "
            f"{rounded_up(result['epsilon_claimed'], 2)} does not hold. Do not publish these vectors."
        )
    else:
        words = (
            f"The canaries refute nothing above ε = {result['epsilon_lower_bound']:.2f} (they could have refuted {result['power']:.2f}); "
            f"the claim is {rounded_up(result['epsilon_claimed'], 2)}. "
            "An audit can refute a claim, never prove it: the proof is the certificate."
        )
    if result["claim_is_of"] != "the run":
        words += " (The claim is what one training of the study costs, which is what was trained again, and not the ε of the whole study.)"
    out.print(words, markup=False)
