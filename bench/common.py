"""What the benchmarks share: data, PyKEEN as a peer, alternating measurements."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("PYKEEN_QUIET", "1")
warnings.filterwarnings("ignore")

from veilgraph import machine  # noqa: E402
from veilgraph.load import Graph, load  # noqa: E402
from veilgraph.load.datasets import find  # noqa: E402


def arguments(description: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """A parser with a flag per default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true")
    for name, value in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return parser


def benchmark(name: str) -> Graph:
    """A benchmark graph."""
    return load(find(name))


def settings(**more: Any) -> dict[str, Any]:
    """Where and how the figures were taken."""
    return {
        "threads": machine.prepare(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **more,
    }


def say(text: str) -> None:
    """Progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def alternate(
    ours: Callable[[], float], peer: Callable[[], float], repeats: int
) -> tuple[list[float], list[float]]:
    """Both measured in turn, so that a busy moment hits both."""
    mine, theirs = [], []
    for _ in range(repeats):
        mine.append(ours())
        theirs.append(peer())
    return mine, theirs


def median(values: list[float]) -> float:
    """The middle one."""
    return float(statistics.median(values))


def seconds(function: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def peak_memory() -> int:
    """Peak resident bytes of this process alone (getrusage would inherit the parent's)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def finish(result: dict[str, Any]) -> dict[str, Any]:
    """Print the result as JSON and return it."""
    print(json.dumps(result, indent=2, ensure_ascii=False))
    return result
