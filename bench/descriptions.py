"""What reading descriptions costs: 14,541 texts encoded and read again from the cache; an epoch on them without and with privacy.

Both trainings see each statement once on average, with the same features, dimension and number of wrong answers, alternating.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import alternate, arguments, benchmark, finish, median, say, settings
from veilgraph.load import split
from veilgraph.mark import mark
from veilgraph.models import text
from veilgraph.models.text.cache import encoded
from veilgraph.train import train

SAME = {"text": "pooled", "text_width": 256, "text_mix": "text", "dimension": 256, "epochs": 1}


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure, print, return."""
    options = arguments(__doc__, repeats=3, negatives=512).parse_args(argv)
    about = settings(repeats=options.repeats, negatives=options.negatives)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VEILGRAPH_CACHE"] = folder
        return finish({**about, **_measure(Path(folder), options)})


def _measure(folder: Path, options: Any) -> dict[str, Any]:
    graph = split(benchmark("fb15k-237"), mode="inductive")
    texts = [one or "" for one in graph.descriptions.to_pylist()]
    times = {}
    for name in ("mean", "pooled"):
        for kind in ("encoded", "cached"):
            began = time.perf_counter()
            features, _ = encoded(text.encoder(name), texts)
            times[f"{name}_{kind}_seconds"] = round(time.perf_counter() - began, 3)
            say(f"{name}, {kind}: {len(features):,} texts in {times[f'{name}_{kind}_seconds']:.2f} s")
    secret = graph.with_marks(mark(graph, everything=True))
    number = iter(range(1000))

    def epoch(of: Any, **more: Any) -> float:
        run = train(of, out=folder / f"run-{next(number)}", **SAME, **more)
        seconds = float(run.trace[-1]["seconds"])
        say(f"{run.guarantee}: {seconds:.1f} s, {run.trace[-1]['positives_per_second']:,.0f} statements/s")
        return seconds

    open_graph = replace(graph, marks=None)
    ordinary, private = alternate(
        lambda: epoch(open_graph, negatives=options.negatives, validate_every=0),
        lambda: epoch(
            secret,
            epsilon=1.0,
            public_descriptions="all",
            private_steps=40,
            sample_rate=0.025,
            private_negatives=options.negatives,
        ),
        options.repeats,
    )
    return {
        "texts": len(texts),
        **times,
        "ordinary_epoch_seconds": median(ordinary),
        "private_epoch_seconds": median(private),
        "ratio": median(private) / median(ordinary),
    }


if __name__ == "__main__":
    main()
