"""veil demo: the whole story on a built-in hospital graph."""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("--out", default="veil-demo", help="the folder to make (default veil-demo)")
    parser.add_argument("--patients", type=int, default=2000, help="size of the hospital (default 2000)")
    parser.add_argument("--model", default="complex", help="which scorer (default complex)")
    parser.add_argument("--epochs", type=int, default=60, help="at most so many passes (default 60)")
    parser.add_argument(
        "--epsilon", type=float, default=2.0, help="budget of the private training (default 2)"
    )
    parser.add_argument("--force", action="store_true", help="replace an earlier demo")
    parser.add_argument("--seed", type=int, default=0, help="of the hospital, the split and the training")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Load, train, evaluate, predict, report."""
    from veilgraph.cli.terminal import TrainingProgress, note
    from veilgraph.report.demo import tell

    return tell(
        options.out,
        patients=options.patients,
        model=options.model,
        epochs=options.epochs,
        epsilon=options.epsilon,
        force=options.force,
        seed=options.seed,
        note=note,
        listener=TrainingProgress(),
    )


def _between(found: dict[str, Any], key: str, interval: str) -> str:
    low, high = found[interval]
    return f"{found[key]:.3f} [{low:.3f}, {high:.3f}]"


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.account.statement import rounded_up
    from veilgraph.cli.terminal import facts, out, table

    table(
        ("", "MRR", "of confidential facts", "Hits@1", "Hits@10", "mean rank"),
        [
            *(
                (name, m["mrr"], m.get("confidential_mrr"), m["hits@1"], m["hits@10"], m["mr"])
                for name, m in result["quality"].items()
                if m
            ),
            (
                "guessing at random",
                max(m["chance_mrr"] for m in result["quality"].values() if m),
                *[None] * 4,
            ),
        ],
        "Held-out facts, ranked among all entities",
    )
    for question, answers in result["answers"].items():
        table((question, "score"), [(a["entity"], a["score"]) for a in answers])
    table(
        (
            "membership attack",
            "AUC (0.5 is a coin)",
            "the same on a model that never read them",
            "found at 1 % false alarms",
        ),
        [
            (
                name,
                _between(found, "auc", "interval"),
                _between(found, "control", "control_interval"),
                found["tpr@fpr=0.01"],
            )
            for name, found in result["attacks"].items()
        ],
    )
    new = result["newcomers"]
    table(
        (f"{new['new']} new diseases, by their descriptions", "MRR", "by chance"),
        [(name, m["mrr"], m["chance"]) for name, m in new["relations"].items()],
    )
    out.print(result["certificate"], markup=False)
    audited = result["audit"]
    facts(
        {
            "audit": f"{audited['verdict']}: ε at least {audited['epsilon_lower_bound']:.2f}, "
            f"claimed {rounded_up(audited['epsilon_claimed'], 2)}",
            "private run": result["private_run"],
            "report": result["report"],
        }
    )
