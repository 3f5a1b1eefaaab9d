"""What it costs to open a run and its graph with every file compared with its hash: 100,000 entities, a million statements.

Each opening is a process of its own, as a command is: from its start to the first answer, with and without comparing, in turns.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import arguments, finish, median, say, settings
from growth import random_graph
from veilgraph.load import load, save
from veilgraph.train import train

OPEN = """
import sys, time
began = time.perf_counter()
from importlib import import_module
files, store, run = (import_module("veilgraph." + name) for name in ("files", "load.store", "run.run"))
if sys.argv[2] == "without":
    files.require_hash = files.require_sum = store._require_unchanged = run.require_hash = lambda *given: None
from veilgraph.run import open_run
found = open_run(sys.argv[1]).predict("entity/0000001", "relation/001", top=3)
print(time.perf_counter() - began, found[0]["entity"])
"""


def opened(run: Path, how: str) -> tuple[float, float, str]:
    """Seconds inside and of the whole process, and the answer."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(run), how], capture_output=True, text=True, check=True
    )
    seconds, answer = done.stdout.split()
    return float(seconds), time.perf_counter() - began, answer


def main() -> dict[str, Any]:
    """Ratios of medians."""
    options = arguments(__doc__, entities=100_000, dimension=64, repeats=9).parse_args()
    found: dict[str, list[tuple[float, float, str]]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as folder:
        save(random_graph(options.entities, 10 * options.entities), Path(folder) / "graph")
        run = train(
            load(Path(folder) / "graph"), out=Path(folder) / "run", model="distmult", dimension=options.dimension, epochs=1,
            candidates="sampled", validate_every=0, averaging=0,
        ).folder  # fmt: skip
        for number in range(options.repeats + 1):
            for how in found:
                one = opened(run, how)
                if number:
                    found[how].append(one)
            say(f"{number} of {options.repeats}")
    assert len({one[2] for all_ in found.values() for one in all_}) == 1
    inside = {how: median([one[0] for one in all_]) for how, all_ in found.items()}
    whole = {how: median([one[1] for one in all_]) for how, all_ in found.items()}
    return finish(
        {
            **settings(entities=options.entities, dimension=options.dimension, repeats=options.repeats),
            "seconds": inside,
            "process_seconds": whole,
            "ratio": inside["with"] / inside["without"],
            "process_ratio": whole["with"] / whole["without"],
        }
    )


if __name__ == "__main__":
    main()
