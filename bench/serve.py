"""What the service carries: a real server, fresh sanitised lists over HTTP, a load generator beside it on the same cores.

A shop of 100,000 entities (20,000 people, the rest items), dimension 128, lists of ten. First the server is started cold (it
learns what to erase) and warm. Then clients ask as fast as they are answered, every request for a list that was never
given: scored, sanitised, charged and stored durably. Then requests arrive at random moments, at half the wanted load,
and are timed from the moment they should have been sent. Last, lists that were given before.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from common import arguments, finish, say, settings
from veilgraph.load import Graph, Vocabulary, save
from veilgraph.mark import mark
from veilgraph.serve.store import open_store
from veilgraph.train import train

PEOPLE, VALUES = 20_000, 2


def shop(entities: int, each: int = 20) -> Graph:
    """People who took some items, popular ones more often, and an attribute of theirs."""
    rng = np.random.default_rng(0)
    items = entities - PEOPLE - VALUES
    names = pa.array(
        [f"item/{i:06d}" for i in range(items)]
        + [f"kind/{i}" for i in range(VALUES)]
        + [f"user/{i:06d}" for i in range(PEOPLE)],
        pa.large_string(),
    )
    user = np.arange(PEOPLE) + items + VALUES
    took = np.stack(
        [
            np.repeat(user, each),
            np.ones(PEOPLE * each, np.int64),
            (rng.random(PEOPLE * each) ** 2 * items).astype(np.int64),
        ],
        1,
    )
    every = np.stack([rng.choice(user, items), np.ones(items, np.int64), np.arange(items)], 1)
    kind = np.stack([user, np.zeros(PEOPLE, np.int64), items + rng.integers(VALUES, size=PEOPLE)], 1)
    triples = np.unique(np.concatenate([took, every, kind]), axis=0).astype(np.int32)
    graph = Graph(Vocabulary(names), Vocabulary(["is", "took"], "relation"), {"train": triples})
    return graph.with_marks(mark(graph, relations=["is"]))


@contextmanager
def serving(words: list[str]) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """A server; its address, the seconds until it answered, and what it said of itself."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "veilgraph.cli", "serve", *words, "--port", "0", "--log", "none", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
        while True:
            try:
                urllib.request.urlopen(facts["address"] + "/healthz", timeout=5).close()
                break
            except OSError:
                time.sleep(0.01)
        yield facts["address"], time.perf_counter() - began, facts
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


class Clients:
    """Connections that ask for lists."""

    def __init__(self, address: str, key: str) -> None:
        self.host, port = address.removeprefix("http://").split(":")
        self.port, self.key = int(port), key
        self.seconds: list[float] = []
        self.failed = 0

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: int, since: float
    ) -> None:
        body = b'{"user":"user/%06d"}' % (user % PEOPLE) if user < PEOPLE else (
            b'{"user":"user/%06d","draw":%d}' % (user % PEOPLE, 1 + user // PEOPLE)
        )  # fmt: skip
        writer.write(
            b"POST /v1/recommend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (self.key.encode(), len(body), body)
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        self.failed += not head.startswith(b"HTTP/1.1 200")
        self.seconds.append(time.perf_counter() - since)

    async def flat_out(self, connections: int, seconds: float, users: Iterator[int]) -> float:
        """Each asks again as soon as it is answered; answers a second."""
        began = time.perf_counter()

        async def one() -> None:
            reader, writer = await self.connect()
            while time.perf_counter() - began < seconds:
                await self.ask(reader, writer, next(users), time.perf_counter())
            writer.close()

        await asyncio.gather(*(one() for _ in range(connections)))
        return len(self.seconds) / (time.perf_counter() - began)

    async def paced(self, rate: float, seconds: float, users: Iterator[int]) -> float:
        """Requests at random moments, so many a second in the mean; answers a second."""
        rng = np.random.default_rng(0)
        moments = np.cumsum(rng.exponential(1 / rate, int(rate * seconds)))
        free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        for _ in range(64):
            free.put_nowait(await self.connect())
        began = time.perf_counter()

        async def one(moment: float) -> None:
            pair = await free.get()
            await self.ask(*pair, next(users), began + moment)
            free.put_nowait(pair)

        tasks = []
        for moment in moments:
            await asyncio.sleep(max(0.0, began + moment - time.perf_counter()))
            tasks.append(asyncio.create_task(one(moment)))
        await asyncio.gather(*tasks)
        return len(self.seconds) / (time.perf_counter() - began)


def figures(clients: Clients, rate: float) -> dict[str, Any]:
    """Rate and times."""
    if clients.failed:
        raise SystemExit(f"{clients.failed} requests failed")
    p50, p99 = np.quantile(clients.seconds, (0.5, 0.99))
    return {
        "requests": len(clients.seconds),
        "requests_per_second": round(rate, 1),
        "p50_ms": round(1000 * float(p50), 2),
        "p99_ms": round(1000 * float(p99), 2),
    }


def main(words: list[str] | None = None) -> dict[str, Any]:
    """Measure."""
    parser = arguments(
        __doc__,
        entities=100_000,
        dimension=128,
        seconds=10.0,
        load=300.0,
        sanitise="balanced",
        connections=32,
    )
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say("making a shop")
        save(shop(options.entities), folder / "graph")
        train(
            folder / "graph",
            out=folder / "run",
            model="distmult",
            dimension=options.dimension,
            epochs=1,
            candidates="sampled",
            drop_confidential=True,
        )
        store = str(folder / "store.sqlite")
        opened = open_store(store)
        key = opened.add_key("bench", "reader")
        opened.close()
        given = [str(folder / "run"), "--store", store, "--user-budget", "1000000", "--rate", "1000000"]
        given += ["--sanitise", options.sanitise]
        if "balanced" in options.sanitise:
            given += ["--attribute", "is", "--everyone-told"]
        if "exponential" in options.sanitise:
            given += ["--known"]
        result = settings(entities=options.entities, dimension=options.dimension, sanitise=options.sanitise)
        say("cold start")
        with serving(given) as (_, cold, _):
            result["cold_start_seconds"] = round(cold, 2)
        say("warm start")
        with serving(given) as (address, warm, facts):
            result["warm_start_seconds"] = round(warm, 2)
            result["ready"] = facts["ready"]
            gc.collect()
            gc.freeze()  # the clients should not make themselves wait
            users = iter(range(10**9))
            clients = Clients(address, key)
            asyncio.run(clients.flat_out(8, 1.0, users))  # warm up
            for title, work in (
                ("flat_out", lambda c: c.flat_out(options.connections, options.seconds, users)),
                ("half_load", lambda c: c.paced(options.load / 2, options.seconds, users)),
                (
                    "repeated",
                    lambda c: c.flat_out(
                        options.connections, options.seconds / 2, iter(list(range(2000)) * 50)
                    ),
                ),
            ):
                clients = Clients(address, key)
                result[title] = figures(clients, asyncio.run(work(clients)))
                say(f"{title}: {result[title]}")
    return finish(result)


if __name__ == "__main__":
    main()
