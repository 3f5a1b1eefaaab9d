"""This checkout beside another one, in turn: an epoch of training, private steps, ranking. ``--other FOLDER`` names the other's root.

Each is measured by its own code and its own benches, in a process that stays; ``ratios`` are medians of ours over medians of theirs,
below 1 where this one is faster. A change that is about order, not speed, should leave all of them within a few percent.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
MODELS = ("transe", "distmult", "complex", "rotate")


def things(data: str) -> dict[str, Callable[[], float]]:
    """What is measured, by name: seconds of one go."""
    import common

    private, train = importlib.import_module("private"), importlib.import_module("train")
    try:
        ranking = importlib.import_module("veilgraph.rank.ranking")
    except ImportError:  # (as it was before 0.2)
        ranking = importlib.import_module("veilgraph.evaluate.ranking")
    common.settings()
    graph, folder = common.benchmark(data), Path(tempfile.mkdtemp())
    given = types.SimpleNamespace(dimension=128, batch=1024, negatives=32, steps=150)
    ranker = ranking.Ranker(graph.triples, len(graph.relations))
    found: dict[str, Callable[[], float]] = {}
    for name in MODELS:
        ours = train.Ours(name, graph, 128, 1024, 32)
        found[f"train {name}"] = ours.epoch
        found[f"sgd {name}"] = private.Ordinary(name, graph, given).time
        found[f"private {name}"] = private.Private(name, graph, given, "lazy", folder).time

        def rank(ours: Any = ours) -> float:
            began = time.perf_counter()
            reciprocal = bool(ours.config.reciprocal)
            ranker.rank(ours.model, ours.state.parameters, graph.splits["test"], reciprocal=reciprocal)
            return time.perf_counter() - began

        found[f"rank {name}"] = rank
    return found


def work(data: str) -> None:
    """Measure what is asked for, line by line."""
    found = things(data)
    print("ready", flush=True)
    for line in sys.stdin:
        print(found[line.strip()](), flush=True)


class Worker:
    """A checkout that measures."""

    def __init__(self, root: Path, data: str) -> None:
        path = f"{root / 'src'}{os.pathsep}{root / 'bench'}"
        command = [sys.executable, str(Path(__file__).resolve()), "--work", data]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        while self._line() != "ready":
            pass

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the other checkout cannot be measured: see above")
        return line.strip()

    def ask(self, name: str) -> float:
        """Seconds of one go."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return float(self._line())


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure and print."""
    from common import alternate, arguments, finish, median, say, settings

    parser = arguments(__doc__, data="fb15k-237", repeats=5)
    parser.add_argument("--other", type=Path, required=True, help="the root of another checkout")
    o = parser.parse_args(argv)
    ours, theirs = Worker(HERE, o.data), Worker(o.other.resolve(), o.data)
    ratios: dict[str, float] = {}
    for kind in ("train", "sgd", "private", "rank"):
        for model in MODELS:
            name = f"{kind} {model}"
            ours.ask(name)
            theirs.ask(name)  # warm
            mine, others = alternate(lambda n=name: ours.ask(n), lambda n=name: theirs.ask(n), o.repeats)  # type: ignore[misc]
            ratios[name] = median(mine) / median(others)
            say(f"{name}: {ratios[name]:.3f}")
    facts = settings(data=o.data, repeats=o.repeats, other=o.other.name)
    return finish({"ratios": ratios, "ratio": median(list(ratios.values())), "settings": facts})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        sys.path.pop(0)  # this folder is before the checkout's own
        work(sys.argv[2])
    else:
        main(sys.argv[1:])
