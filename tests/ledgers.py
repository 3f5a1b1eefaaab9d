"""A forger who knows how the sums of a ledger's lines are made: what he leaves out must be found by its meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from veilgraph.files import line_of


def rewrite(path: Path, lines: Iterable[str | Mapping[str, Any]]) -> None:
    """A ledger of these lines, whose sums fit."""
    out, before = b"", ""
    for line in lines:
        found = json.loads(line) if isinstance(line, str) else dict(line)
        found.pop("sum", None)
        data, before = line_of(found, before)
        out += data
    path.write_bytes(out)
