"""What is the curator's alone: the salt of the commitment, and the place where a training began."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilgraph.account.certificate import seal
from veilgraph.account.events import nothing
from veilgraph.account.ledger import Ledger
from veilgraph.errors import PrivacyError, RunError
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


def place_of(folder: Path, unchanged: str = VOCABULARY) -> list[int]:
    """Which folder it is, on this machine: a copy has other numbers, and a file that was put back changed later than it was written.

    ``unchanged`` is a file in it that nobody writes again.
    """
    kept = (folder / unchanged).stat()
    return [folder.stat().st_ino, (folder / LEDGER).stat().st_ino, kept.st_ino, kept.st_ctime_ns]


def only_one(ledger: Ledger, whose: Path, what: str, command: str, *, moved: bool) -> None:
    """Raise for a folder that is not where its training began, unless somebody says that no other copy goes on: that is written down."""
    if not moved:
        raise PrivacyError(
            f"{whose} is a copy of the folder this {what} began in, or was moved or restored (or somebody changed who may read "
            "its files). If both went on, each would be "
            f"certified for what it spent alone, and the two would add up. If this is the only one that will go on, say so: {command}"
        )
    ledger.charge(nothing(), "goes on in another place; by the curator's word the only one", moved=True)


def write_curator(folder: Path, known: Mapping[str, Any]) -> None:
    """The salt of the commitment, and where the training began."""
    write_json(folder / CURATOR, {**known, "seal": seal(known)})
