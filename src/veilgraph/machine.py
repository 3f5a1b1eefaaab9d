"""How the program uses the machine it is on: threads that sleep while they wait, and memory that is kept instead of given back.

On a machine that others use too, a thread that waits for another one by spinning takes the core the other one needs: with as many busy
processes as cores, trainings took four to twelve times as long. So threads that wait sleep soon (``veilgraph/waiting.py``; it must be said
before the first parallel loop), and as many are started as there are cores that this process may use and nobody else does.

Training allocates the same few megabytes at every step. The C library returns such blocks to the system and asks for
them again, and clearing fresh pages then costs more than the arithmetic (measured: 12.3 → 8.2 ms a step). ``prepare``
tells it to keep them.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import math
import os
import sys
import time
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from veilgraph.errors import ConfigError

LOOK = 0.15  # seconds
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _KEEP = -3, -1, 1 << 30


def cores() -> int:
    """How many cores this process may use: by its affinity, and by the quota of its control groups."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([own, *(math.ceil(quota) for quota in _quotas())]))


@lru_cache(maxsize=1)
def free_cores() -> int:
    """How many of them nobody used when this process first asked; one at least."""
    own = cores()
    if own == 1:
        return 1
    before = _idle()
    time.sleep(LOOK)
    after = _idle()
    idle = (
        sum(after[cpu] - before[cpu] for cpu in after.keys() & before.keys()) / TICKS / LOOK
        if before
        else own
    )
    return max(1, min(own, math.ceil(idle - 0.3)))


def _idle(stat: Path = Path("/proc/stat")) -> dict[int, int]:
    """Ticks that each core this process may use has been idle; nothing where that cannot be read."""
    try:
        lines = [
            line.split() for line in stat.read_text(encoding="ascii").splitlines() if line.startswith("cpu")
        ]
        allowed = os.sched_getaffinity(0)
        found = {int(words[0][3:]): int(words[4]) + int(words[5]) for words in lines if words[0] != "cpu"}
    except (OSError, ValueError, IndexError, AttributeError):
        return {}
    return {cpu: ticks for cpu, ticks in found.items() if cpu in allowed}


def _quotas(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> list[float]:
    """Cores that control groups allow, this process's and those above it; nothing where there is no limit (or none to be read)."""
    try:
        lines = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for _, controllers, path in (line for line in lines if len(line) == 3):
        first = "cpu" in controllers.split(",")
        base = root / "cpu" if first else root  # version 1 has a tree for each controller
        places = (
            [base / path.lstrip("/"), *(base / path.lstrip("/")).parents] if first or not controllers else []
        )
        for place in places:
            if base in (place, *place.parents):
                found += _quota(place)
    return found


def _quota(place: Path) -> list[float]:
    """Of one control group."""
    try:
        if (place / "cpu.max").is_file():
            words = (place / "cpu.max").read_text(encoding="ascii").split()
        elif (place / "cpu.cfs_quota_us").is_file():
            words = [
                (place / f"cpu.cfs_{name}_us").read_text(encoding="ascii").strip()
                for name in ("quota", "period")
            ]
        else:
            return []
        return [float(words[0]) / float(words[1])] if words[0] != "max" and float(words[0]) > 0 else []
    except (OSError, ValueError, IndexError, ZeroDivisionError):
        return []


def prepare(threads: int | None = None) -> int:
    """Set the number of threads (as many as there are free cores, if None) and the memory policy; returns the number of threads."""
    import numba
    import torch

    if threads is not None and threads < 1:
        raise ConfigError(f"threads must be at least 1, found {threads}")
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    count = threads or (int(asked) if asked.isdecimal() else 0) or free_cores()
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
    numba.set_num_threads(max(1, min(count, numba.config.NUMBA_NUM_THREADS)))  # of the compiled loops
    keep_memory()
    return count


def keep_memory() -> None:
    """Tell the C library not to give blocks back."""
    if sys.platform == "linux":
        library = ctypes.CDLL(None)  # this process, its C library with it
        if hasattr(library, "mallopt"):
            library.mallopt(_MMAP_THRESHOLD, _KEEP)
            library.mallopt(_TRIM_THRESHOLD, _KEEP)


def import_later(name: str) -> ModuleType:
    """A module that is read when something in it is first used."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module named {name!r}", name=name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def memory() -> int:
    """Bytes of memory this process may use: the machine's, or what its container is given."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # (no container, or no limit: «max»)
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return found
