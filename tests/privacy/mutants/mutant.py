"""What a planted fault is, and where all of them are found: every module beside this one has a list ``MUTANTS``."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
SOURCE = Path("src/veilgraph")
NO_LISTS = ("mutant", "plant", "test_mutants")


class Mutant(NamedTuple):
    """In ``file`` (below src/veilgraph) ``old``, which is there exactly once, becomes ``new``; ``killed_by`` must fail then."""

    name: str
    file: str
    old: str
    new: str
    killed_by: str  # a test below tests/, as pytest names it

    @property
    def path(self) -> Path:
        """From the project's root."""
        return SOURCE / self.file

    @property
    def test(self) -> str:
        """From the project's root."""
        return f"tests/{self.killed_by}"


def everything() -> list[Mutant]:
    """Every mutant, room by room."""
    here = Path(__file__).parent
    names = sorted(found.name for found in pkgutil.iter_modules([str(here)]) if found.name not in NO_LISTS)
    rooms = (importlib.import_module(f"tests.privacy.mutants.{name}") for name in names)
    return [mutant for room in rooms for mutant in room.MUTANTS]
