"""Threads that wait turn round a few thousand times and then sleep: read once, when the first library with parallel loops is loaded.

Without a sleep they take the core from the thread they wait for, wherever others use the machine too; without a turn every short loop
begins with waking somebody up. A value that is set already is somebody's wish, and stays.
"""

from __future__ import annotations

import os

if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
