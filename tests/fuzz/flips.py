"""One bit of a saved graph, a finished run or one that was stopped, at a time: each is noticed when what it is in is used.

Noticed is: refused with an error, a certificate that does not verify, or figures that are not believed and measured again. The order of the
files is theirs by size, so that vectors are hit as often as they would be on a disk, but every file is hit.
"""

from __future__ import annotations

import argparse
import collections
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.targets import Place
from veilgraph import resume
from veilgraph.errors import VeilError
from veilgraph.layout import ATTACKS, METRICS, kind_of
from veilgraph.load import load
from veilgraph.run import open_run
from veilgraph.run.measured import about, recall
from veilgraph.run.verify import verify


def graph(folder: Path, name: str) -> str | None:
    """What is used of a graph."""
    load(folder)
    return None


def finished(place: Place) -> Callable[[Path, str], str | None]:
    """What is used of a run: its promise, its vectors, its figures, its trace."""

    def use(folder: Path, name: str) -> str | None:
        run = open_run(folder)
        if name in (METRICS, ATTACKS):
            asked = {"split": "test"} if name == METRICS else {}
            return "measured again" if recall(run, name, about(run, place.graph, **asked)) is None else None
        found = verify(run, place.graph)
        if not found["valid"]:
            return "does not verify"
        run.predict(place.graph.entities[0], place.graph.relations[0], top=3)
        run.trace  # noqa: B018
        run.certificate  # noqa: B018
        return None

    return use


def unfinished(place: Place) -> Callable[[Path, str], str | None]:
    """Whoever goes on with it."""

    def use(folder: Path, name: str) -> str | None:
        run = open_run(folder)
        run.trace  # noqa: B018
        done = resume(folder, graph=place.graph, moved=True)
        if not verify(done, place.graph)["valid"]:
            return "does not verify"
        return None

    return use


def main() -> int:
    """How many flips, and which went unnoticed."""
    parser = argparse.ArgumentParser(prog="tests.fuzz.flips")
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    began, counted, missed = time.monotonic(), collections.Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        open_run(place.folder / "private").evaluate("test")
        uses = {
            "graph": graph,
            "private": finished(place),
            "ordinary": finished(place),
            "counts": finished(place),
            "unfinished": unfinished(place),
        }
        files = [
            (kind, path)
            for kind in uses
            for path in sorted((place.folder / kind).iterdir())
            if path.is_file()
        ]
        for number in range(options.flips):
            rng = random.Random(f"{options.seed} {number}")
            kind, path = files[number % len(files)]
            copy = Path(folder) / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(place.folder / kind, copy)
            data = bytearray(path.read_bytes())
            bit = rng.randrange(8 * len(data))
            data[bit // 8] ^= 1 << bit % 8
            (copy / path.name).write_bytes(data)
            try:
                found = uses[kind](copy, path.name)
            except VeilError:
                found = "refused"
            counted[found or "unnoticed"] += 1
            if found is None:
                missed.append((kind, path.name, bit, kind_of(copy)))
    for one in missed[:20]:
        print("unnoticed:", *one)
    print({**counted, "flips": options.flips, "seconds": round(time.monotonic() - began)})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
