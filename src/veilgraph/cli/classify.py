"""veil classify GRAPH [--labels FILE] [--model kegcn] [--seeds 10]"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("graph", help="a saved graph, a file or a folder")
    parser.add_argument("--labels", help="a table of entity and label (default: labels.tsv beside the graph)")
    parser.add_argument("--model", help="kegcn (default), rgcn, wgcn or compgcn")
    parser.add_argument(
        "--score", help="whose gradients are KE-GCN's messages (default transe; see docs/classify.md)"
    )
    parser.add_argument("--seeds", type=int, default=1, help="repetitions (default 1)")
    parser.add_argument(
        "--share",
        type=float,
        default=0.1,
        help="of the labelled entities to learn from, if the source does not say (default 0.1)",
    )
    for name, kind, text in (
        ("dimension", int, "numbers per entity (default 32)"),
        ("layers", int, "convolutions (default 5; 2 with fewer than 1,000 entities to learn from)"),
        ("bases", int, "matrices that relations mix (default 0: as the model says)"),
        ("alpha", float, "weight of messages"),
        (
            "hidden",
            float,
            "share of entities whose row is hidden while training (default 0.95; 0.5 with few)",
        ),
        ("dropout", float, "share of numbers hidden between layers (default 0)"),
        ("learning-rate", float, "step size (default 0.02)"),
        ("penalty", float, "on entities' rows (default 0)"),
        ("epochs", int, "passes (default 100; 40 with few)"),
        ("seed", int, "of the first repetition (default 0)"),
        ("threads", int, "processor threads"),
    ):
        parser.add_argument(f"--{name}", type=kind, help=text)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Learn and tell."""
    from veilgraph.cli.terminal import EpochProgress
    from veilgraph.train.classify import ClassifyConfig, classify

    keys = ClassifyConfig.__dataclass_fields__
    settings = {key: getattr(options, key) for key in keys if getattr(options, key, None) is not None}
    return classify(
        options.graph,
        options.labels,
        seeds=options.seeds,
        share=options.share,
        listener=EpochProgress(),
        **settings,
    )


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts

    facts({key: value for key, value in result.items() if value is not None})
