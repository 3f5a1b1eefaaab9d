"""The graph: immutable ids, vocabularies and named splits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from veilgraph.errors import InputError, UnknownNameError
from veilgraph.load.marks import Marks
from veilgraph.load.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test")
DECIDED_FROM = (
    "decided_from"  # in ``extra``: what was decided by looking at statements that were not marked yet
)
DECIDED_UNDER = "decided_under"  # in ``extra``: the same under marks, each with a digest of what was open
BLANK_NODES = (
    "blank_nodes"  # in ``extra``: whether those of an RDF source have its "labels" or are "numbered"
)
HELD_OUT = "held_out"  # in ``extra``: entities that a split keeps from training, which is public


SPLIT = re.compile(r"\w[\w.-]{0,99}")


def is_split_name(name: object) -> bool:
    """Whether a split may be called so: it becomes the name of a file, beside those of entities and relations."""
    fits = isinstance(name, str) and SPLIT.fullmatch(name) is not None
    return fits and str(name).lower() not in ("entities", "relations")


@dataclass(frozen=True, eq=False)
class Graph:
    """Statements as ``[n, 3]`` int32 arrays (head, relation, tail), by split, with the names behind the ids.

    ``marks`` says which statements are confidential. ``descriptions`` holds a text (or None) for each entity, if the
    source had any. ``source`` is what ``load`` gives this very graph for, or empty. Arrays cannot be written to:
    whatever changes a graph returns a new one.
    """

    entities: Vocabulary
    relations: Vocabulary
    splits: Mapping[str, np.ndarray]
    descriptions: Any = None  # Arrow string array, as long as entities
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    marks: Marks | None = None  # which statements are confidential; None: nobody said
    weights: Mapping[str, np.ndarray] | None = (
        None  # how much each statement counts in learning; None: all count as one
    )

    def __post_init__(self) -> None:
        frozen = {}
        for name in self.splits:
            if not is_split_name(name):
                raise InputError(
                    f"no split can be called {name!r}: its name becomes that of a file. Take letters, digits, «_», «-» and dots, beginning "
                    "with a letter or a digit (and neither entities nor relations)."
                )
        for name in sorted(self.splits, key=lambda s: SPLITS.index(s) if s in SPLITS else len(SPLITS)):
            array = np.ascontiguousarray(self.splits[name], dtype=np.int32).reshape(-1, 3)
            array.flags.writeable = False
            frozen[name] = array
        frozen.setdefault("train", np.empty((0, 3), np.int32))
        object.__setattr__(self, "splits", MappingProxyType(frozen))
        if self.weights is not None:
            given = {name: np.asarray(self.weights[name], np.float32) for name in frozen}
            if any(len(given[name]) != len(frozen[name]) for name in frozen):
                raise InputError("a weight is needed for every statement, or for none.")
            object.__setattr__(self, "weights", MappingProxyType(given))

    @property
    def train(self) -> np.ndarray:
        """The statements to learn from."""
        return self.splits["train"]

    def split(self, name: str) -> np.ndarray:
        """The statements of one split, or an error that says which there are."""
        if name not in self.splits:
            raise UnknownNameError("split", name, self.splits, hint=f"There are: {', '.join(self.splits)}.")
        return self.splits[name]

    @cached_property
    def triples(self) -> np.ndarray:
        """All statements of all splits."""
        return np.concatenate(list(self.splits.values()))

    def __len__(self) -> int:
        return sum(len(array) for array in self.splits.values())

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {len(array):,}" for name, array in self.splits.items())
        return f"Graph({len(self.entities):,} entities, {len(self.relations):,} relations; {parts})"

    def with_splits(self, splits: Mapping[str, np.ndarray]) -> Graph:
        """The same vocabularies with other statements (which the source no longer gives); marks follow statements."""
        found = replace(self, splits=splits, source="", marks=None, weights=None)
        if self.weights is not None:
            found = replace(found, weights={split: self._weights_of(a) for split, a in splits.items()})
        if self.marks is None:
            return found
        secret = np.concatenate([self.keys(a[self.secret(s)]) for s, a in self.splits.items()])
        known = np.concatenate([self.keys(a[~self.secret(s)]) for s, a in self.splits.items()])
        masks = {  # a statement nobody spoke of before counts as confidential
            split: np.isin(self.keys(array), secret) | ~np.isin(self.keys(array), known)
            for split, array in found.splits.items()
        }
        return replace(found, marks=replace(self.marks, masks=masks))

    def with_marks(self, marks: Marks | None) -> Graph:
        """The same statements, marked."""
        if marks is not None:
            sizes = {split: len(mask) for split, mask in marks.masks.items()}
            if sizes != {split: len(array) for split, array in self.splits.items()}:
                raise InputError(
                    "these marks were made for another graph: splits or numbers of statements differ."
                )
        return replace(self, marks=marks)

    def weight(self, split: str) -> np.ndarray | None:
        """How much each statement of a split counts in learning, in float32 (as much as it is probable); None: each as one."""
        return None if self.weights is None else self.weights[split]

    def _weights_of(self, statements: np.ndarray) -> np.ndarray:
        """How much these statements count; those the graph does not have count as one."""
        assert self.weights is not None
        keys = self.keys(self.triples)
        order = np.argsort(keys, kind="stable")
        known, given = (
            keys[order],
            np.concatenate([self.weights[split] for split in self.splits])[order],
        )
        asked = self.keys(np.asarray(statements).reshape(-1, 3))
        place = np.searchsorted(known, asked).clip(max=max(len(known) - 1, 0))
        certain = np.ones(len(asked), np.float32)
        return np.where(known[place] == asked, given[place], certain) if len(known) else certain

    def secret(self, split: str) -> np.ndarray:
        """Which statements of a split are confidential; none, if nothing was marked."""
        if self.marks is None:
            return np.zeros(len(self.split(split)), bool)
        return self.marks.masks[split]

    def is_secret(self, statements: np.ndarray) -> np.ndarray:
        """Which of these statements, wherever they are in the graph, are confidential."""
        secret = [self.keys(array[self.secret(split)]) for split, array in self.splits.items()]
        return np.isin(self.keys(statements), np.concatenate(secret))

    def keys(self, array: np.ndarray) -> np.ndarray:
        """One integer per statement: equal for equal statements."""
        keys = array[:, 0].astype(np.int64)
        keys *= len(self.relations)
        keys += array[:, 1]
        keys *= len(self.entities)
        keys += array[:, 2]
        return keys

    @property
    def held_out(self) -> np.ndarray:
        """Which entities the split kept from training on purpose, ``[entities]``."""
        found = np.zeros(len(self.entities), bool)
        ids = np.asarray(self.extra.get(HELD_OUT, ()), np.int64)
        if len(ids) and (ids.min() < 0 or ids.max() >= len(found)):
            raise InputError(
                "the graph's list of entities held out names ids that it does not have: load it again."
            )
        found[ids] = True
        return found

    @property
    def decided_from(self) -> tuple[str, ...]:
        """What was decided by looking at statements before they were marked; a promise takes it to be public.

        A decision that looked at what was unrestricted then is one of them, once something of that is confidential, or the unit another.
        """
        told = [str(line) for line in self.extra.get(DECIDED_FROM, ())]
        under = [
            str(one["what"]) for one in self.extra.get(DECIDED_UNDER, ()) if one["open"] != self.open_digest
        ]
        return tuple(dict.fromkeys([*told, *under]))

    def decided(self, what: str) -> Graph:
        """The same graph, with a decision that was just made written down: it looked at any statement or, if marks told which it may
        look at, at what they leave open."""
        if self.marks is None:
            lines = [line for line in self.extra.get(DECIDED_FROM, ()) if line != what]
            return replace(self, extra={**self.extra, DECIDED_FROM: [*lines, what]})
        under = [*self.extra.get(DECIDED_UNDER, ()), {"what": what, "open": self.open_digest}]
        return replace(self, extra={**self.extra, DECIDED_UNDER: under})

    @property
    def open_digest(self) -> str:
        """A SHA-256 of the unit and of what is unrestricted, wherever it stands: public."""
        opened = [self.keys(array[~self.secret(split)]) for split, array in self.splits.items()]
        digest = hashlib.sha256((self.marks.unit if self.marks is not None else "").encode())
        digest.update(np.unique(np.concatenate(opened)).tobytes() if opened else b"")
        return digest.hexdigest()

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 over names and statements: equal for equal graphs, wherever they came from."""
        digest = hashlib.sha256()
        for vocabulary in (self.entities, self.relations):
            for buffer in vocabulary.array.buffers()[1:]:
                digest.update(b"|")
                digest.update(memoryview(buffer) if buffer is not None else b"")
        for name, array in self.splits.items():
            digest.update(name.encode())
            digest.update(array.tobytes() if len(array) < 1 << 20 else array.data)
            if self.weights is not None:
                digest.update(self.weights[name].tobytes())
        return digest.hexdigest()
