"""Reading a TSV file of 10 million triples: triples per second and peak memory, beside a plain dictionary loop.

Ours runs in a process of its own, whose peak memory is reported less the vocabulary. The peers read the first part.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from common import arguments, finish, median, peak_memory, say, settings
from veilgraph.load import check, load


def write_file(path: Path, triples: int, entities: int) -> None:
    """A tab-separated file with names of the usual length."""
    rng = np.random.default_rng(0)
    pl.DataFrame(
        {
            "h": rng.integers(entities, size=triples),
            "r": rng.integers(500, size=triples),
            "t": (rng.random(triples) ** 2 * entities).astype(np.int64),
        }
    ).select(
        pl.format("entity/{}", "h").alias("h"),
        pl.format("relation/{}", "r").alias("r"),
        pl.format("entity/{}", "t").alias("t"),
    ).write_csv(path, separator="\t", include_header=False)


def measure(path: str) -> dict[str, Any]:
    """Load in this process."""
    base = peak_memory()
    began = time.perf_counter()
    graph = load(path)
    seconds = time.perf_counter() - began
    peak = peak_memory()
    began = time.perf_counter()
    findings = check(graph)  # once more, to know its share of the time above
    vocabulary = sum(b.size for v in (graph.entities, graph.relations) for b in v.array.buffers() if b)
    return {
        "seconds": seconds,
        "check_seconds": time.perf_counter() - began,
        "triples_per_second": len(graph) / seconds,
        "bytes_per_triple": (peak - base - vocabulary) / len(graph),
        "peak_gigabytes": peak / 1e9,
        "entities": len(graph.entities),
        "triples": len(graph),
        "findings": [str(f) for f in findings],
    }


def dictionary(path: str, triples: int) -> float:
    """Triples per second of the loop everybody writes first."""
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    rows = []
    began = time.perf_counter()
    with open(path, encoding="utf-8") as file:
        for _, line in zip(range(triples), file):
            h, r, t = line.rstrip("\n").split("\t")
            rows.append(
                (
                    entities.setdefault(h, len(entities)),
                    relations.setdefault(r, len(relations)),
                    entities.setdefault(t, len(entities)),
                )
            )
    np.array(rows, dtype=np.int32)
    return triples / (time.perf_counter() - began)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure and print."""
    parser = arguments(__doc__, triples=10_000_000, entities=1_000_000, repeats=3, peer_triples=1_000_000)
    parser.add_argument("--file", help="measure only this file, in this process")
    o = parser.parse_args(argv)
    if o.file:
        return finish(measure(o.file))
    facts = settings(triples=o.triples, entities=o.entities)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "big.tsv")
        write_file(Path(path), o.triples, o.entities)
        runs, loops = [], []
        for _ in range(o.repeats):
            child = subprocess.run(
                [sys.executable, __file__, "--file", path], capture_output=True, text=True, check=True
            )
            runs.append(json.loads(child.stdout))
            loops.append(dictionary(path, o.peer_triples))
            say(f"{runs[-1]['triples_per_second']:,.0f} against {loops[-1]:,.0f} triples/s")
    rate, loop = median([r["triples_per_second"] for r in runs]), median(loops)
    return finish(
        {
            "ours": {
                "triples_per_second": rate,
                "bytes_per_triple": max(r["bytes_per_triple"] for r in runs),
                "peak_gigabytes": max(r["peak_gigabytes"] for r in runs),
                "check_seconds": median([r["check_seconds"] for r in runs]),
            },
            "peers": {"python dictionary": loop},
            "ratio": rate / loop,
            "settings": facts,
        }
    )


if __name__ == "__main__":
    main(sys.argv[1:])
