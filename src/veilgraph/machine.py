"""How the program uses the machine it is on: threads, and memory that is kept instead of given back.

Training allocates the same few megabytes at every step. The C library returns such blocks to the system and asks for
them again, and clearing fresh pages then costs more than the arithmetic (measured: 12.3 → 8.2 ms a step). ``prepare``
tells it to keep them.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from types import ModuleType

from veilgraph.errors import ConfigError

_MMAP_THRESHOLD, _TRIM_THRESHOLD, _KEEP = -3, -1, 1 << 30


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prepare(threads: int | None = None) -> int:
    """Set the number of threads (all cores, if None) and the memory policy; returns the number of threads."""
    import torch

    from veilgraph.models import kernels

    if threads is not None and threads < 1:
        raise ConfigError(f"threads must be at least 1, found {threads}")
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    count = threads or (int(asked) if asked.isdecimal() else 0) or _cores()
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
    kernels.use_threads(count)
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
