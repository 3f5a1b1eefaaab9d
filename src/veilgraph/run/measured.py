"""What was measured of a run stays with it, for the curator: who asks again, of the same graph, is told without measuring again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilgraph import __version__
from veilgraph.account.certificate import seal
from veilgraph.disk import digest
from veilgraph.errors import RunError, StorageError
from veilgraph.files import read_json, write_json
from veilgraph.layout import CERTIFIED
from veilgraph.run.commitment import commitment

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph
    from veilgraph.run.run import Run


def about(run: Run, graph: Graph, **asked: Any) -> dict[str, Any]:
    """What figures are of: a run's files as they are, statements and marks (under the run's salt), the program, and what was asked."""
    files = [digest(run.folder / name) for name in CERTIFIED if (run.folder / name).is_file()]
    key = f"{commitment(graph, run.salt or '00')} {' '.join(files)} {__version__}"
    return {"of": hashlib.sha256(key.encode()).hexdigest(), **asked}


def remember(run: Run, name: str, of: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Keep figures in a file of the run; a run that cannot be written to is only looked at."""
    try:
        document = {**found, "measured_on": dict(of)}
        write_json(run.folder / name, {**document, "seal": seal(document)})
    except StorageError:
        return


def is_whole(path: Path) -> bool:
    """Whether a file of figures is what was written."""
    return _sealed(path) is not None


def _sealed(path: Path) -> dict[str, Any] | None:
    """What a file of figures says; None where it is not there, or not what was written."""
    try:
        found = read_json(path)
    except RunError:
        return None
    return found if found.pop("seal", None) == seal(found) else None


def recall(run: Run, name: str, of: Mapping[str, Any]) -> dict[str, Any] | None:
    """Figures of just that, if they were measured; a damaged file is none."""
    found = _sealed(run.folder / name)
    return found if found is not None and found.pop("measured_on", None) == dict(of) else None
