"""Settings that tests of guarantees share."""

from __future__ import annotations

from typing import Any

CLUBS = ["club0", "club1", "club2"]
SETTINGS: dict[str, Any] = {"share": 0.5, "threads": 1, "names": CLUBS}
HOSPITAL: dict[str, Any] = {"share": 0.5, "threads": 1}
