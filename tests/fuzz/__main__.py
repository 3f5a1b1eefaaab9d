"""Throw inputs at every target, in processes that may die; tell what came of each.

An input may be read, or refused with one of our errors. A traceback, ten seconds, two gigabytes or a dead process are failures, and are kept
in tests/fuzz/corpus, from where the suite reads them again.
"""

from __future__ import annotations

import argparse
import base64
import collections
import contextlib
import json
import logging
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
SECONDS, BYTES = 10, 2 << 30


def inputs(seed: int, first: int, count: int, place: Any, scratch: Path) -> None:
    """Read so many inputs, in this process; a line for each before and after."""
    from tests.fuzz.mutate import mutated
    from tests.fuzz.targets import lay_out, targets
    from veilgraph.errors import VeilError

    logging.disable(logging.CRITICAL)
    os.environ["VEILGRAPH_LIMITS"] = ""
    every = targets(place)
    weights = [one.weight for one in every]

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    for number in range(first, first + count):
        rng = random.Random(f"{seed} {number}")
        target = rng.choices(every, weights)[0]
        name = rng.choice(sorted(target.seeds))
        data = mutated(target.seeds[name], rng, list(target.seeds.values()))
        _tell({"number": number, "target": target.name, "file": name})
        lay_out(target, name, data, scratch)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.alarm(SECONDS)
        try:
            target.read(scratch, name)
            outcome, why = "read", ""
        except VeilError as error:
            outcome, why = "refused", str(error)
        except json.JSONDecodeError as error:
            outcome, why = ("refused" if target.name == "certificate" else "traceback"), repr(error)
        except BaseException as error:
            outcome, why = (
                ("hang" if isinstance(error, TimeoutError) else "traceback"),
                "".join(traceback.format_exception(error))[-1500:],
            )
        finally:
            signal.alarm(0)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > BYTES:
            outcome, why = "memory", f"{grown:,} bytes"
        bad = outcome not in ("read", "refused")
        _tell(
            {
                "number": number,
                "outcome": outcome,
                **({"why": why, "data": base64.b64encode(data).decode()} if bad else {}),
            }
        )


def _tell(line: dict[str, Any]) -> None:
    sys.stdout.write("\x1e" + json.dumps(line) + "\n")
    sys.stdout.flush()


def throw(
    seed: int, count: int, folder: Path, first: int = 0
) -> tuple[collections.Counter[str], list[dict[str, Any]]]:
    """The same in child processes, until all are read; how often what came of it, and what was bad."""
    counted: collections.Counter[str] = collections.Counter()
    bad: list[dict[str, Any]] = []
    last = first + count
    while first < last:
        words = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--child",
            str(seed),
            str(first),
            str(last - first),
            str(folder),
        ]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
        ) as child:
            assert child.stdout is not None
            open_: dict[str, Any] = {}
            for line in child.stdout:
                if not line.startswith("\x1e"):
                    continue
                said = json.loads(line[1:])
                if "outcome" not in said:
                    open_ = said
                    continue
                counted[said["outcome"]] += 1
                if "why" in said:
                    bad.append({**open_, **said})
                first, open_ = said["number"] + 1, {}
        if open_:
            counted["died"] += 1
            bad.append({**open_, "outcome": "died", "why": f"exit code {child.returncode}"})
            first = open_["number"] + 1
        elif child.returncode:
            raise SystemExit(f"the child ended with {child.returncode} before an input was read")
    return counted, bad


def keep(found: dict[str, Any]) -> None:
    """One input that was bad, for the suite."""
    if "data" in found:
        CORPUS.mkdir(exist_ok=True)
        path = CORPUS / f"{found['target'].replace('/', '-').replace(' ', '-')}-{found['number']}.json"
        path.write_text(json.dumps({key: found[key] for key in ("target", "file", "data")}) + "\n")


def main() -> int:
    """How many inputs, and what came of them."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="keep what was bad in tests/fuzz/corpus")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    from tests.fuzz.targets import Place

    if options.child:
        seed, first, count, folder = options.child
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stderr(open(os.devnull, "w")):
            inputs(int(seed), int(first), int(count), Place(Path(folder)), Path(scratch) / "input")
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        Place(Path(folder))
        counted, bad = throw(options.seed, options.inputs, Path(folder))
    for one in bad:
        print(f"{one['outcome']}: input {one['number']} of {one['target']} ({one['file']})\n{one['why']}")
        if options.keep:
            keep(one)
    print({**counted, "inputs": options.inputs, "seconds": round(time.monotonic() - began)})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
