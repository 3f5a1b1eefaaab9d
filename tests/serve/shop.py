"""A little shop to serve from: two kinds of people, each with its own half of the items."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.load import Graph, Vocabulary, save, split
from veilgraph.mark import mark
from veilgraph.run.run import Run
from veilgraph.train import train

USERS, ITEMS = 80, 60


def make_shop(folder: Path) -> Run:
    """A trained recommender; what kind somebody is is confidential and was not read. Items have a shelf, people a town."""
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=USERS)
    names = sorted(
        [f"user/{i:02d}" for i in range(USERS)]
        + [f"item/{i:02d}" for i in range(ITEMS)]
        + ["user/99", "kind/0", "kind/1", "shelf/0", "shelf/1", "town/0", "town/1"]
    )
    at = {name: i for i, name in enumerate(names)}
    rows = [(at[f"item/{i:02d}"], 1, at[f"shelf/{i % 2}"]) for i in range(ITEMS)]
    for user in range(USERS):
        me = at[f"user/{user:02d}"]
        own = rng.permutation(ITEMS // 2)[: 15 if user else 30] + kind[user] * (ITEMS // 2)
        rows += [(me, 2, at[f"item/{item:02d}"]) for item in own]
        rows += [(me, 0, at[f"kind/{kind[user]}"]), (me, 3, at[f"town/{user % 2}"])]
    rows.append((at["user/99"], 3, at["town/0"]))  # somebody who took nothing
    relations = Vocabulary(["is", "stands", "took", "wohnt"], "relation")
    graph = Graph(Vocabulary(names), relations, {"train": np.array(rows, np.int32)})
    graph = split(graph, valid=0.05, test=0.1, mode="latest")
    (folder / "items.txt").write_text("".join(f"item/{i:02d}\n" for i in range(ITEMS)), encoding="utf-8")
    save(graph.with_marks(mark(graph, relations=["is"])), folder / "graph")
    return train(
        folder / "graph",
        out=folder / "run",
        model="distmult",
        dimension=16,
        epochs=10,
        threads=1,
        drop_confidential=True,
    )


def items_of(run: Run) -> str:
    """The public list of all items, in a file."""
    return str(run.folder.parent / "items.txt")


@contextmanager
def serving(folder: Path, *words: str, patience: float = 60.0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A real server in a process of its own, on a free port; stopped afterwards. Gives its address."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "veilgraph.cli",
            "serve",
            str(folder),
            "--port",
            "0",
            "--log",
            "none",
            "--json",
            *words,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        address = json.loads(line)["address"]
        deadline = time.monotonic() + patience
        while True:
            try:
                urllib.request.urlopen(address + "/healthz", timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.05)
        yield address, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def post(address: str, path: str, key: str | None, body: Any) -> tuple[int, Any]:
    """Status and answer."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
