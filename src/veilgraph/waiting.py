"""Threads that wait sleep instead of spinning: read once, when the first library with parallel loops is loaded, so said before any.

A value that is set already is somebody's wish, and stays.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
