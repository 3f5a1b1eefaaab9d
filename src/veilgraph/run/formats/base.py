"""What every export format is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from veilgraph.load.vocabulary import Vocabulary

if TYPE_CHECKING:
    from veilgraph.run.run import Run

PUBLISHED = 0o666  # less the umask: what is exported is for others, whatever a file of that name is elsewhere


class Format(ABC):
    """One way of writing a run's vectors into a folder."""

    name: ClassVar[str]
    counts: ClassVar[str | None] = None  # how noisy counts are written beside; None: they are not

    def refuse(self, run: Run) -> None:
        """Raise where what would be written does not answer as the run answers."""

    @abstractmethod
    def write(self, run: Run, folder: Path) -> None:
        """Write into an empty folder."""


def tables(run: Run) -> list[tuple[str, Vocabulary, np.ndarray]]:
    """Entity and relation tables with their names; the backward rows of reciprocal relations get names of their own."""
    p, relations = run.parameters, run.relations
    if len(p.relations) == 2 * len(relations):
        both = [*relations, *(f"{name} (inverse)" for name in relations)]
        relations = Vocabulary(pa.array(both, pa.large_string()), "relation")
    return [("entities", run.entities, p.entities.numpy()), ("relations", relations, p.relations.numpy())]


def one_line(name: str) -> str:
    """A name without what would end it in a text file."""
    return name.replace("\t", " ").replace("\n", " ")


def write_rows(path: Path, names: Vocabulary, rows: np.ndarray, separator: str, first: str = "") -> None:
    """A line for each name; where blanks separate, those in names become underscores."""
    with path.open("w", encoding="utf-8") as file:
        file.write(first)
        for name, row in zip(names, rows):
            shown = one_line(name)
            file.write((shown.replace(" ", "_") if separator == " " else shown) + separator)
            file.write(separator.join(f"{value:.8g}" for value in row) + "\n")
