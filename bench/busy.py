"""How much longer a training takes where others use the machine: as many busy processes as cores, alone and beside them in turn.

``ratio`` is the time beside them over the time alone, the median of pairs from one run. Two trainings that share a core take twice as long
each: beside as many busy processes as cores, a ratio of 2 is this program's fair share. Every training is a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import arguments, finish, median, say, settings
from veilgraph import machine
from veilgraph.load import load, save, split

TRAINING = """
import sys, time
from veilgraph.load import load
from veilgraph.train import train
graph, out, model, epochs, threads = sys.argv[1:]
given = {"model": model, "validate_every": 0, "threads": int(threads) or None, "seed": 0}
train(graph, out=out + "/warm", epochs=1, **given)
began = time.perf_counter()
train(graph, out=out + "/run", epochs=int(epochs), **given)
print(time.perf_counter() - began)
"""


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that do nothing but work; ended at the end."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def timed(graph: Path, o: Any) -> float:
    """Seconds of one training, in a process of its own; reading the graph and compiling loops are not counted."""
    with tempfile.TemporaryDirectory() as out:
        asked = [str(graph), out, o.model, str(o.epochs), str(o.threads)]
        done = subprocess.run(
            [sys.executable, "-c", TRAINING, *asked], check=True, capture_output=True, text=True, timeout=900
        )
    return float(done.stdout.split()[-1])


def main(words: list[str] | None = None) -> dict[str, Any]:
    """Measure."""
    parser = arguments(__doc__, patients=1000, model="complex", epochs=10, threads=0, repeats=3)
    o = parser.parse_args(words)
    alone, beside = [], []
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "graph"
        save(split(load("builtin:hospital", patients=o.patients), valid=0.05, test=0.05), graph)
        for number in range(o.repeats):
            alone.append(timed(graph, o))
            with busy(machine.cores()):
                beside.append(timed(graph, o))
            say(
                f"{number + 1}/{o.repeats}: {alone[-1]:.1f} s alone, {beside[-1]:.1f} s beside {machine.cores()} busy processes"
            )
    return finish(
        {
            "ratio": median([two / one for one, two in zip(alone, beside)]),
            "alone_seconds": alone,
            "beside_seconds": beside,
            "busy": machine.cores(),
            "settings": settings(patients=o.patients, model=o.model, epochs=o.epochs),
        }
    )


if __name__ == "__main__":
    main()
