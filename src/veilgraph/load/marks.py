"""Marks: which statements are confidential, and whose they are. Plain data; ``veilgraph.mark`` makes them from rules."""

from __future__ import annotations

import fnmatch
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import yaml

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph


class Marker(ABC):
    """Makes marks from a file of rules. Reading a graph takes one, whoever it is (``veilgraph.mark`` has it)."""

    name: ClassVar[str]

    @abstractmethod
    def marks(self, graph: Graph, rules: Path) -> Marks | None:
        """What is confidential in the graph by these rules; None where they are about nothing it has."""


@dataclass(frozen=True, eq=False)
class Marks:
    """A yes or no for every statement of every split, the privacy unit, and the rules that led there.

    ``unit`` is ``statement``, ``head`` or ``group:KEY`` (KEY names a relation); ``per_unit`` is the public cap on the
    statements of one unit that a private step may read.
    """

    masks: Mapping[str, np.ndarray]
    unit: str = "statement"
    per_unit: int = 1
    rules: tuple[Mapping[str, Any], ...] = ()
    decided_from: tuple[str, ...] = ()  # which rules looked at statements that are confidential: in words

    def __post_init__(self) -> None:
        frozen = {}
        for split, mask in self.masks.items():
            array = np.array(mask, bool)
            array.flags.writeable = False
            frozen[split] = array
        object.__setattr__(self, "masks", MappingProxyType(frozen))

    def possible(self, relations: Sequence[str]) -> np.ndarray:
        """For each of these relations, whether its statements may be confidential — as far as public rules tell, true or false."""
        if not self.rules or any(set(rule) != {"relation"} for rule in self.rules):
            return np.ones(len(relations), bool)
        patterns = [str(rule["relation"]) for rule in self.rules]
        return np.array([any(n == p or fnmatch.fnmatchcase(n, p) for p in patterns) for n in relations], bool)

    @property
    def document(self) -> dict[str, Any]:
        """What marks.yaml holds: readable, and free of statements."""
        return {
            "unit": self.unit,
            "per_unit": self.per_unit,
            "rules": [dict(rule) for rule in self.rules],
            **({"decided_from": list(self.decided_from)} if self.decided_from else {}),
            "confidential": {split: int(mask.sum()) for split, mask in self.masks.items()},
        }

    @property
    def fingerprint(self) -> str:
        """A SHA-256 over unit, rules and every yes and no. For the curator: it depends on confidential data."""
        digest = hashlib.sha256(yaml.safe_dump(self.document).encode())
        for split, mask in self.masks.items():
            digest.update(split.encode() + np.packbits(mask).tobytes())
        return digest.hexdigest()
