"""Quality of every model beside published figures, with the minutes each training took.

``--set fb15k-237`` trains every model on FB15k-237 (dimension 200 or less), ``--set quick`` the best in two minutes;
``--set small`` and ``--set wn18rr`` train TransE, DistMult, ComplEx and RotatE on UMLS and Kinship, and on WN18RR;
``--set defaults`` gives only a model's name to graphs the defaults were never tuned for. One training after another,
each with all cores; test split, both sides, filtered.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, benchmark, finish, say, settings
from published import published
from veilgraph.train import train

SLOWLY = {"batch": 256, "schedule": "linear"}  # small batches to the end: slower and better than the defaults
FB15K237: dict[str, dict[str, Any]] = {  # what differs from the defaults
    "rescal": {"candidates": "all", "batch": 512, "schedule": "linear", "epochs": 38, "validate_every": 19},
    "complex": {"dimension": 200, **SLOWLY, "epochs": 40},
    "distmult": {"dimension": 200, **SLOWLY, "epochs": 30},
    "quate": {"dimension": 200, **SLOWLY, "epochs": 30},
    "rotate": {"dimension": 200, "epochs": 60},
    "transe": {"dimension": 200, "epochs": 60},
    "transm": {"dimension": 200, "epochs": 40},
    "transh": {"dimension": 100, "epochs": 12},
}
WN18RR: dict[str, dict[str, Any]] = {
    "transe": {"margin": 5.0, "schedule": "linear", "epochs": 110, "validate_every": 22},
    "distmult": {
        "dimension": 512,
        "regulariser_weight": 0.1,
        "dropout": 0.4,
        "schedule": "linear",
        "epochs": 60,
        "validate_every": 20,
    },
    "complex": {},
    "rotate": {"margin": 6.0, "schedule": "linear", "epochs": 150, "validate_every": 25},
}
QUICK = {"complex": {"dimension": 200, "schedule": "linear", "epochs": 10, "averaging": 0.5}}
FOUR = ("transe", "distmult", "complex", "rotate")
SETS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "fb15k-237": [("fb15k-237", model, chosen) for model, chosen in FB15K237.items()],
    "quick": [("fb15k-237", model, chosen) for model, chosen in QUICK.items()],
    "small": [(data, model, {}) for data in ("umls", "kinship") for model in FOUR],
    "wn18rr": [("wn18rr", model, chosen) for model, chosen in WN18RR.items()],
    "defaults": [(data, "complex", {}) for data in ("codex-s", "nations", "wn18", "nell-995")],
}


def measure(
    data: str, model: str, chosen: dict[str, Any], reference: float | None, seed: int = 0
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
            "published": reference,
            "of_published": found["mrr"] / reference if reference else None,
            "minutes": sum(line["seconds"] + line.get("validate_seconds", 0) for line in run.trace) / 60,
            "epochs": len(run.trace),
            "valid": [
                (line["epoch"], round(line["valid_mrr"], 4)) for line in run.trace if "valid_mrr" in line
            ],
            "settings": {k: v for k, v in run.config.as_dict().items() if k != "threads"},
        }
        say(
            f"{data} {model}: MRR {row['mrr']:.4f} (published {reference}) in {row['minutes']:.1f} min, {row['epochs']} epochs"
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
    facts = settings(set=o.set, seed=o.seed)
    rows = [
        measure(data, model, chosen, published(data, model), o.seed)
        for data, model, chosen in SETS[o.set]
        if not only or model in only
    ]
    return finish({"rows": rows, "settings": facts})


if __name__ == "__main__":
    main(sys.argv[1:])
