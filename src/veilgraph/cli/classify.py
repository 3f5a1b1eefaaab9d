"""veil classify GRAPH [--labels FILE | --by PATH] [--model kegcn] [--seeds 10] [--guarantee edge --epsilon 8 --out DIR]"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("graph", help="a saved graph, a file or a folder")
    parser.add_argument("--labels", help="a table of entity and label (default: labels.tsv beside the graph)")
    parser.add_argument(
        "--by", metavar="PATH", help="labels are where a path of relations ends, such as admittedTo/wardOf"
    )
    parser.add_argument("--without", metavar="RELATIONS", help="left out of the edges, with commas")
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
        ("learning-rate", float, "step size (default 0.02; 0.1 for private steps)"),
        ("penalty", float, "on entities' rows (default 0)"),
        ("epochs", int, "passes (default 100; 40 with few)"),
        ("seed", int, "of the first repetition (default 0)"),
        ("threads", int, "processor threads"),
    ):
        parser.add_argument(f"--{name}", type=kind, help=text)
    parser.add_argument("--drop-confidential", action="store_true", default=None, help="a baseline")
    promise = parser.add_argument_group("with a guarantee")
    promise.add_argument("--guarantee", help="what is protected: label, edge or node (docs/classify.md)")
    for name, sort, text in (
        ("epsilon", float, "how much may be told about it"),
        ("delta", float, "and with which probability more (default 1e-6)"),
        (
            "into",
            str,
            "edge: ends of a statement that hear of each other, release by release (default heads)",
        ),
        ("places", int, "label, node: numbers that say where an entity is (default 256)"),
        ("hops", int, "how far they are smoothed (default 32; label, node 128)"),
        ("steps", int, "label, node: private steps (default 300)"),
        ("sample-rate", float, "label, node: chance of an entity to be in a step (default 0.1)"),
        ("clip", float, "label, node: norm of a gradient (default 1)"),
    ):
        promise.add_argument(f"--{name}", type=sort, help=text)
    promise.add_argument(
        "--several", action="store_true", default=None, help="label, node: entities may have several labels"
    )
    promise.add_argument(
        "--label-names",
        metavar="LIST",
        help="label, node: the public list of labels, a file or words with commas",
    )
    promise.add_argument("--secure-noise", action="store_true", default=None, help="noise from AES")
    promise.add_argument("--out", help="the folder for what may be released, with its certificate")
    promise.add_argument(
        "--moved",
        action="store_true",
        help="the folder was stopped, and moved or restored, and no other copy of it will go on",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Learn and tell."""
    from veilgraph.classify import ClassifyConfig, classify
    from veilgraph.cli.terminal import EpochProgress

    keys = ClassifyConfig.__dataclass_fields__
    settings = {key: getattr(options, key) for key in keys if getattr(options, key, None) is not None}
    return classify(
        options.graph,
        options.labels,
        by=options.by,
        names=options.label_names,
        without=options.without,
        seeds=options.seeds,
        out=options.out,
        moved=options.moved,
        share=options.share,
        listener=EpochProgress(),
        **settings,
    )


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts

    shown = {key: value for key, value in result.items() if value is not None}
    if "interval" in shown:
        shown["interval"] = f"± {shown['interval']:.4f} (95 %, over {result['seeds']} seeds)"
    beside = {
        f"accuracy of {words}": shown.pop(key)
        for key, words in (("majority", "the commonest label for all"), ("coin", "labels at random"))
        if key in shown
    }
    facts(
        {
            k: v
            for key, value in shown.items()
            for k, v in {key: value, **(beside if key == "accuracy" else {})}.items()
        }
    )
