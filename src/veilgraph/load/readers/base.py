"""What every reader is, and what it may be told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from veilgraph.errors import ReadError
from veilgraph.load.frames import pl

COLUMNS = ("head", "relation", "tail")


@dataclass(frozen=True)
class ReadOptions:
    """What may be said about a source; each reader looks at what concerns it."""

    columns: tuple[str, str, str] | None = None  # names (with a header) or positions "0", "1", "2"
    header: bool | None = None  # None: only if columns are given by name
    separator: str | None = None  # None: by the file's ending
    literals: str = "drop"  # RDF: "drop" | "entity"
    descriptions: str | None = None  # a file of «entity, text» lines
    language: str | None = None  # of RDF descriptions; None: the first one
    query: str | None = None  # SPARQL CONSTRUCT
    timeout: float = 60.0  # SPARQL, seconds
    mapping: str | None = None  # a database or a folder of tables: R2RML, a file or the name of a shipped one
    marks: bool = True  # whether rules that lie beside the mapping are applied
    tell: Callable[[Any], None] | None = field(
        default=None, compare=False
    )  # who hears of each finding; None: the log
    patients: int = 2000  # builtin:hospital
    seed: int = 0  # builtin:hospital


@dataclass
class Names:
    """The two growing vocabularies of one load: head and tail share one."""

    entity: pl.Categorical = field(default_factory=lambda: pl.Categorical(pl.Categories.random()))
    relation: pl.Categorical = field(default_factory=lambda: pl.Categorical(pl.Categories.random()))

    @property
    def schema(self) -> dict[str, pl.Categorical]:
        """The columns a reader returns."""
        return {"head": self.entity, "relation": self.relation, "tail": self.entity}


@dataclass
class Parts:
    """What a reader returns: a frame of statements per split, and perhaps a text per entity name."""

    splits: Mapping[str, pl.DataFrame]
    descriptions: Mapping[str, str] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    apart: tuple[str, ...] = ()  # splits about entities that training is not to know
    decided: tuple[
        str, ...
    ] = ()  # what reading decided by looking at any statement: a promise takes it to be public


class Reader(ABC):
    """Reads one kind of source."""

    name: ClassVar[str]
    scheme: ClassVar[str] = ""  # how its sources begin, if that tells them: «tables:»
    of_files: ClassVar[bool] = True  # whether what follows the scheme is a path
    endings: ClassVar[tuple[str, ...]] = ()
    turn: ClassVar[int] = 1  # who is asked first: 0 addresses, 1 schemes and folders, 2 files by their ending
    example: ClassVar[str] = ""

    def reads(self, source: str) -> bool:
        """Whether this source looks like ours."""
        if self.scheme:
            return source.startswith(self.scheme)
        return Path(source.removesuffix(".gz")).suffix.lower() in self.endings

    @abstractmethod
    def read(self, source: str, options: ReadOptions, names: Names) -> Parts:
        """All statements of the source; raises ReadError with file and line."""


def distinct(column: pl.Series) -> pl.Series:
    """One row for each name that occurs in a categorical column, by its codes alone (no hashing of rows)."""
    codes = column.to_physical().to_numpy()
    if not len(codes):
        return column
    place = np.full(int(codes.max()) + 1, -1, np.int64)
    place[codes] = np.arange(len(codes))
    return column.gather(place[place >= 0])


def regular_file(source: str) -> Path:
    """The path of a file that exists, is a file and is not empty."""
    path = Path(source)
    if not path.exists():
        raise ReadError(
            source, "there is no such file. Check the path, or see `veil load --help` for what can be read."
        )
    if path.is_dir():
        raise ReadError(
            source, "is a directory with no train, valid or test file in it; expected a file of statements."
        )
    if not path.stat().st_size:
        raise ReadError(source, "the file is empty; expected one statement per line.")
    return path
