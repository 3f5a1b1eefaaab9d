"""``make mutants``: plant every fault in a copy of the program, one at a time, and see the test it names fail.

Words on the command line choose mutants whose names have them. Exit code 1: one survives, and the promise rests on nobody looking.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.privacy.mutants.mutant import ROOT, Mutant, everything

COPIED = ("src", "tests", "pyproject.toml", "README.md", "docs")
SECONDS = 600
FAILED = 1  # what pytest says where tests were run and some failed; everything else is no answer


def copied(folder: Path) -> Path:
    """A copy to plant faults in, compiled loops included."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        elif source.exists():
            shutil.copy2(source, folder / name)
    return folder


def run(tree: Path, test: str) -> tuple[int, str]:
    """pytest's exit code and its last words."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-m",
            "",
            test,
        ],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout[-2000:]


def killed(mutant: Mutant, tree: Path) -> tuple[str, str]:
    """«killed», «SURVIVES» or «NO ANSWER», and why; the copy is as it was afterwards."""
    path = tree / mutant.path
    before, times = path.read_text(encoding="utf-8"), path.stat()
    if before.count(mutant.old) != 1:
        return "NO ANSWER", f"what it replaces is there {before.count(mutant.old)} times, not once"
    try:
        path.write_text(before.replace(mutant.old, mutant.new), encoding="utf-8")
        code, said = run(tree, mutant.test)
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if code == FAILED:
        return "killed", ""
    return ("SURVIVES", said) if code == 0 else ("NO ANSWER", f"pytest ended with {code}: {said}")


def main(words: list[str]) -> int:
    """Plant those whose names have one of the words (all, without any), two at a time."""
    wanted = [one for one in everything() if not words or any(word in one.name for word in words)]
    workers = min(2, os.cpu_count() or 1, max(len(wanted), 1))
    began, bad = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as place:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            trees.put(copied(Path(place) / str(number)))

        def one(mutant: Mutant) -> tuple[Mutant, str, str]:
            tree = trees.get()
            try:
                return mutant, *killed(mutant, tree)
            finally:
                trees.put(tree)

        sound = sorted({mutant.test for mutant in wanted})
        tree = trees.get()
        code, said = run(tree, sound[0]) if len(sound) == 1 else _all(tree, sound)
        trees.put(tree)
        if code != 0:
            print(f"the tests do not pass without a fault, so they can kill none:\n{said}")
            return 1
        with ThreadPoolExecutor(workers) as pool:
            for done, (mutant, found, why) in enumerate(pool.map(one, wanted), 1):
                left = (time.monotonic() - began) / done * (len(wanted) - done)
                print(
                    f"{done}/{len(wanted)} {found:9} {mutant.name} — {mutant.test}  (about {left / 60:.0f} min left)",
                    flush=True,
                )
                if found != "killed":
                    bad += 1
                    print(why, flush=True)
    print(f"{len(wanted) - bad} of {len(wanted)} mutants killed in {(time.monotonic() - began) / 60:.1f} min")
    return 1 if bad else 0


def _all(tree: Path, tests: list[str]) -> tuple[int, str]:
    """The tests without any fault: one that fails anyway kills nobody."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-m", "", *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3 * SECONDS,
        check=False,
    )
    return done.returncode, done.stdout[-2000:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
