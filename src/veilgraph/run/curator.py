"""What is the curator's alone: the salt of the commitment, and the place where a training began."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilgraph.account.certificate import seal
from veilgraph.errors import RunError
from veilgraph.files import as_json, read_json, write_json
from veilgraph.layout import CURATOR, LEDGER, VOCABULARY


def read_curator(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What it says; of earlier versions without a seal."""
    path = folder / CURATOR
    found = read_json(path)
    known = {key: value for key, value in found.items() if key != "seal"}
    if set(known) - {"salt", "place"} or found.get("seal", seal(known)) != seal(known):
        raise RunError(f"{path} is damaged: it is not what was written.")
    if "training" in facts and not {"seal", "place"} <= found.keys():
        raise RunError(f"{path} is damaged: it is not what was written.")
    if "seal" in found and path.read_text(encoding="utf-8") != as_json(found):
        raise RunError(f"{path} is damaged: it says the same in other characters.")
    return known


def place_of(folder: Path) -> list[int]:
    """Which folder it is, on this machine: a copy has other numbers, and a file that was put back changed later than it was written."""
    names = (folder / VOCABULARY).stat()  # (which nobody writes again)
    return [folder.stat().st_ino, (folder / LEDGER).stat().st_ino, names.st_ino, names.st_ctime_ns]


def write_curator(folder: Path, known: Mapping[str, Any]) -> None:
    """The salt of the commitment, and where the training began."""
    write_json(folder / CURATOR, {**known, "seal": seal(known)})
