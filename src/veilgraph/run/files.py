"""What a run folder must be, before it is written to or read from (its files: ``layout.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from veilgraph.disk import digest
from veilgraph.errors import UsageError, VerificationError
from veilgraph.layout import CLASSIFICATION, CONFIG, LEDGER, MANIFEST, RELATIONS


def require_unchanged(
    folder: Path, certified: Mapping[str, str], looked_at: Sequence[str] = (CONFIG, LEDGER)
) -> None:
    """Raise if a certified file is gone, or one that is looked at is another; a run's vectors are hashed by ``veil certificate verify``."""
    gone = [name for name in certified if not (folder / name).is_file()]
    small = [name for name in looked_at if name not in gone]
    changed = [name for name in small if certified.get(name) != digest(folder / name)]
    if gone or changed:
        said = [*(f"{name} is gone" for name in gone), *(f"{name} was changed" for name in changed)]
        raise VerificationError(
            f"{folder} is not as it was certified: {', '.join(said)}. What it promises, and what it would answer, is not known. "
            "Put the files back, or train again."
        )


def instead(path: Path) -> str:
    """What is where a run should be, and what to do about it."""
    if not path.exists():
        return f"there is no such folder. Make one with: veil train GRAPH --out {path}"
    kinds = {
        MANIFEST: f"it holds a graph. Train on it with: veil train {path} --out RUN, and name RUN",
        CLASSIFICATION: "it holds a classification (veil classify), which has answers and a certificate, and no vectors",
        "federation.json": "it holds a federation's server. Each client's run is in clients/NAME",
    }
    return next((text for name, text in kinds.items() if (path / name).is_file()), "it has no config.yaml")


def check_target(path: Path) -> None:
    """Refuse, before any work is done, a folder that holds something else."""
    if (path / CONFIG).exists():
        if (path / RELATIONS).exists():
            raise UsageError(f"{path} holds a finished run already. Choose another --out.")
        raise UsageError(f"{path} holds an unfinished run. Continue it with: veil resume {path}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} exists already and is not empty. Choose another --out.")
