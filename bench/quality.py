"""Quality of every model beside published figures, with the minutes each training took.

``--set fb15k-237`` trains every model on FB15k-237 (dimension 200 or less); ``--set small`` trains TransE, DistMult,
ComplEx and RotatE on WN18RR, UMLS and Kinship; ``--set defaults`` gives only a model's name to graphs the defaults were
never tuned for. One process after another, each with all cores; test split, both sides, filtered.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, benchmark, finish, say, settings
from veilgraph.train import train

# Published test MRR. LibKGE: Ruffini et al.'s table of the library's README. UMLS and Kinship: see docs/benchmarks.md.
FB15K237: dict[str, tuple[float | None, dict[str, Any]]] = {
    "rescal": (
        0.356,
        {"dimension": 128, "dropout": 0.4, "regulariser": "n3", "regulariser_weight": 0.005, "epochs": 30},
    ),
    "complex": (0.348, {"dimension": 200, "epochs": 18}),
    "distmult": (0.343, {"dimension": 200, "epochs": 14}),
    "rotate": (0.333, {"dimension": 200, "epochs": 60}),
    "transe": (0.313, {"dimension": 200, "epochs": 60}),
    "transm": (None, {"dimension": 200, "epochs": 40}),
    "quate": (None, {"dimension": 200, "epochs": 14}),
    "transh": (None, {"dimension": 100, "epochs": 15}),
}


def measure(
    data: str, model: str, chosen: dict[str, Any], published: float | None, seed: int = 0
) -> dict[str, Any]:
    """Train one model and rank the test split."""
    graph = benchmark(data)
    folder = Path(tempfile.mkdtemp())
    try:
        run = train(graph, out=folder / "run", model=model, seed=seed, **chosen)
        found = run.evaluate("test", graph=graph)
        row = {
            "data": data,
            "model": model,
            "mrr": found["mrr"],
            "hits@1": found["hits@1"],
            "hits@10": found["hits@10"],
            "published": published,
            "of_published": found["mrr"] / published if published else None,
            "minutes": sum(line["seconds"] + line.get("validate_seconds", 0) for line in run.trace) / 60,
            "epochs": len(run.trace),
            "valid": [
                (line["epoch"], round(line["valid_mrr"], 4)) for line in run.trace if "valid_mrr" in line
            ],
            "settings": {k: v for k, v in run.config.as_dict().items() if k != "threads"},
        }
        say(
            f"{data} {model}: MRR {row['mrr']:.4f} (published {published}) in {row['minutes']:.1f} min, {row['epochs']} epochs"
        )
        return row
    finally:
        shutil.rmtree(folder)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure and print."""
    parser = arguments(__doc__, set="fb15k-237", seed=0)
    parser.add_argument("--models", default="", help="only these, comma-separated")
    o = parser.parse_args(argv)
    only = set(o.models.split(",")) - {""}
    plan = [
        ("fb15k-237", model, chosen, published)
        for model, (published, chosen) in FB15K237.items()
        if not only or model in only
    ]
    rows = [measure(data, model, chosen, published, o.seed) for data, model, chosen, published in plan]
    return finish({"rows": rows, "settings": settings(seed=o.seed)})


if __name__ == "__main__":
    main(sys.argv[1:])
