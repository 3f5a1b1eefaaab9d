"""Keeps other programs from outliving us: started in their place, it starts them, and ends all of them when we are gone.

    python -m veilgraph.federate.guardian COMMAND …

Whoever starts it keeps its standard input open. When that closes, because its starter ended in whatever way, or when it is told to
stop, it ends the command and everything the command started, also what moved to a session of its own (such processes become children
of the guardian when their parents end). It imports nothing of ours: it must be there at once and stay small.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

SUBREAPER, DEATH_SIGNAL = 36, 1  # of Linux' prctl
GRACE = 8.0  # seconds for programs to end by themselves


def main(words: list[str]) -> int:
    """The command's exit code, as shells tell it."""
    _prctl(SUBREAPER, 1)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    command = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: _prctl(
            DEATH_SIGNAL, signal.SIGKILL
        ),  # (if somebody kills the guardian; before there are threads)
    )
    threading.Thread(target=_watch, args=(stop,), daemon=True).start()
    while command.poll() is None and not stop.wait(0.1):
        _reap(command.pid)
    end(command, GRACE)
    code = command.returncode if command.returncode is not None else -signal.SIGKILL
    return code if code >= 0 else 128 - code


def _watch(stop: threading.Event) -> None:
    with suppress(OSError):
        while os.read(0, 1):
            pass
    stop.set()


def end(command: subprocess.Popen[bytes], grace: float) -> None:
    """Ask everything below this process to end, then make it."""
    ends = time.monotonic() + grace
    asked: set[int] = set()
    if command.poll() is None:
        command.terminate()
    while below := descendants(os.getpid()):
        late = time.monotonic() > ends
        for process in below:
            if late or process not in asked:
                asked.add(process)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL if late else signal.SIGTERM)
        _reap(command.pid)
        command.poll()
        if time.monotonic() > ends + 5:
            return
        time.sleep(0.05)
    command.poll()


def descendants(process: int) -> list[int]:
    """Children, and theirs, that still run."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [process]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _reap(besides: int) -> None:
    """Take note of those that ended, but for one that somebody else waits for."""
    with suppress(ChildProcessError):
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        while found is not None and found.si_pid != besides:
            os.waitpid(found.si_pid, os.WNOHANG)
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)


def _prctl(option: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
