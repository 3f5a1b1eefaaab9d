"""Kill at each file operation (opening to write, renaming, removing, making folders, exchanging them, syncing), then look at what is left."""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.crash.scenarios import SCENARIOS, Scenario, hospital
from veilgraph import folders
from veilgraph.load import load, save
from veilgraph.serve.sqlite import SqliteStore

AUDITED = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.chmod",
    "shutil.rmtree",
    "sqlite3.connect",
)


def counting(at: int, tell: Callable[[int], None]) -> None:
    """From here on count operations; kill this process at one of them (−1: tell how many there were, in the end)."""
    seen = [0]

    def step() -> None:
        seen[0] += 1
        if seen[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)
        tell(seen[0])

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in AUDITED or (
            event == "open"
            and isinstance(arguments[2], int)
            and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        ):
            step()

    fsync, exchange = os.fsync, folders._renameat2

    def synced(descriptor: int) -> None:
        step()
        fsync(descriptor)

    def exchanged(draft: Path, target: Path) -> bool:
        step()
        done = exchange(draft, target)
        step()
        return done

    asked = SqliteStore.run

    def between(self: SqliteStore, sql: str, values: Any = ()) -> Any:
        step()
        found = asked(self, sql, values)
        step()
        return found

    os.fsync, folders._renameat2, SqliteStore.run = synced, exchanged, between  # type: ignore[method-assign]
    sys.addaudithook(audit)


def in_child(work: Callable[[], object]) -> tuple[int, str]:
    """Run it in a process of its own; its signal or code, and what it said last."""
    with tempfile.NamedTemporaryFile("w+") as words:
        process = os.fork()
        if process == 0:
            code = 1
            try:
                work()
                code = 0
            except BaseException:
                words.write(traceback.format_exc()[-2500:])
                words.flush()
            finally:
                os._exit(code)
        status = os.waitpid(process, 0)[1]
        words.seek(0)
        return os.waitstatus_to_exitcode(status), words.read()


def count(scenario: Scenario, place: Path) -> int:
    """How many operations its work has."""
    read, write = os.pipe()

    def work() -> None:
        counting(-1, lambda n: os.write(write, n.to_bytes(4, "little")))
        scenario.work(place)

    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    last = 0
    with os.fdopen(read, "rb") as pipe:
        while data := pipe.read(4):
            last = int.from_bytes(data, "little")
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    return last


def kills(name: str, points: int, folder: Path) -> tuple[int, int, list[str]]:
    """How many operations there are, how many kills were tried, and what was not whole afterwards."""
    scenario, wrong, tried = SCENARIOS[name](), [], 0
    before = folder / f"{name}-before"
    before.mkdir()
    code, said = in_child(lambda: scenario.start(before))
    assert code == 0, said
    place = folder / name
    shutil.copytree(before, place)
    if name == "resume":
        _same_place(before, place)
    every = count(scenario, place)
    at = sorted({1 + i * every // points for i in range(points)}) if points < every else range(1, every + 1)
    for number in at:
        shutil.rmtree(place)
        shutil.copytree(before, place)
        if name == "resume":
            _same_place(before, place)

        def work(number: int = number) -> None:
            counting(number, lambda n: None)
            scenario.work(place)

        code, said = in_child(work)
        if code == 1:
            wrong.append(f"{name}, not killed at {number}: {said}")
        tried += 1
        code, said = in_child(lambda: scenario.check(place))
        if code != 0:
            wrong.append(f"{name}, killed at operation {number} of {every}: {said}")
    return every, tried, wrong


def _same_place(before: Path, place: Path) -> None:
    """The copy is the run's own place here: what is tested is not copies."""
    from veilgraph.files import read_json
    from veilgraph.run.curator import place_of, write_curator

    known = read_json(before / "run" / "curator.json")
    known.pop("seal")
    write_curator(place / "run", {**known, "place": place_of(place / "run")})


def graph_kills(times: int, folder: Path) -> list[str]:
    """Kills at any moment of saving a graph over another, over and over: how it was missing or neither of the two."""
    small, large = hospital(), hospital(60)
    prints, target, wrong = {small.fingerprint, large.fingerprint}, folder / "saved", []
    save(small, target)
    rng = random.Random(0)
    for number in range(times):

        def work() -> None:
            while True:
                save(large, target, force=True)
                save(small, target, force=True)

        process = os.fork()
        if process == 0:
            work()
        time.sleep(rng.uniform(0.001, 0.08))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        missing = not (target / "graph.yaml").is_file()
        try:
            if missing or load(target).fingerprint not in prints:
                wrong.append(f"kill {number}: {'missing' if missing else 'neither'}")
        except Exception as error:
            wrong.append(f"kill {number}: {error}")
    left = [path.name for path in folder.iterdir() if path.name.startswith(".saved")]
    return wrong + [f"left behind: {name}" for name in left]


def main() -> int:
    """All scenarios, the points divided among them."""
    parser = argparse.ArgumentParser(prog="make crash")
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--graph-kills", type=int, default=500)
    parser.add_argument("--only", choices=sorted(SCENARIOS))
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    names = [options.only] if options.only else list(SCENARIOS)
    began, wrong, total = time.monotonic(), [], 0
    with tempfile.TemporaryDirectory() as made:
        for name in names:
            every, tried, found = kills(name, -(-options.points // len(names)), Path(made))
            total += tried
            wrong += found
            print(f"{name}: {tried} kills at {every} operations, {len(found)} wrong", flush=True)
        if options.graph_kills and not options.only:
            found = graph_kills(options.graph_kills, Path(made))
            print(
                f"saving over a graph: {options.graph_kills} kills at any moment, {len(found)} wrong",
                flush=True,
            )
            wrong += found
    for one in wrong:
        print(one)
    print(
        {
            "kills": total,
            "graph_kills": options.graph_kills,
            "wrong": len(wrong),
            "seconds": round(time.monotonic() - began),
        }
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
