"""Labels of entities: a table of two columns, entity and label; an entity may have several."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veilgraph.errors import InputError
from veilgraph.files import write_text
from veilgraph.limits import opened
from veilgraph.load.graph import Graph

NAMES = ("labels", "entity_types")  # of the file beside a graph's
SPLITS = ("train", "test")
Words = list[tuple[str, str, str]]  # entity, label, fold (or nothing)


@dataclass(frozen=True)
class Labels:
    """``entity`` and ``label`` ``[n]``: ids of the graph's entities and of ``names``.

    ``fold`` ``[n]`` says train or test, if the source does.
    """

    entity: np.ndarray
    label: np.ndarray
    names: Sequence[str]
    fold: np.ndarray | None = None  # of str

    @property
    def several(self) -> bool:
        """Whether an entity has more than one."""
        return len(np.unique(self.entity)) < len(self.entity)

    def of(self, names: Sequence[str]) -> Labels:
        """Those of a list of names that was fixed beforehand; others are left out."""
        place = {name: number for number, name in enumerate(names)}
        new = np.array([place.get(name, -1) for name in self.names])[self.label]
        kept = new >= 0
        fold = self.fold[kept] if self.fold is not None else None
        return Labels(self.entity[kept], new[kept], list(names), fold)

    def words(self, graph: Graph) -> Words:
        """The same by name."""
        folds = self.fold if self.fold is not None else np.full(len(self.entity), "")
        labels = [self.names[label] for label in self.label.tolist()]
        return list(zip(graph.entities.names(self.entity), labels, folds.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"Labels({len(np.unique(self.entity)):,} entities, {len(self.names)} labels)"


def read_labels(graph: Graph, source: str | Path | None = None) -> Labels:
    """Of a file, or of the files beside a graph (labels.tsv; labels_train.tsv and labels_test.tsv say what is to be told apart)."""
    if source is None and not graph.source:
        raise InputError(
            "this graph is not from a file: name a table of two columns, entity and label, with --labels FILE."
        )
    path = Path(graph.source if source is None else source)
    if source is not None and path.is_file():
        return _labels(graph, [(path, "")])
    if source is not None and not path.is_dir():
        raise InputError(f"there is no table of labels at {path}.")
    folder = path if path.is_dir() else path.parent
    for name in NAMES:
        parts = [(found, fold) for fold in SPLITS if (found := _file(folder, f"{name}_{fold}")) is not None]
        if len(parts) == len(SPLITS):
            return _labels(graph, parts)
        whole = _file(folder, name)
        if whole is not None:
            return _labels(graph, [(whole, "")])
    raise InputError(
        f"{path} has no labels: name a table of two columns, entity and label, with --labels FILE (or put labels.tsv beside the graph)."
    )


def write_labels(graph: Graph, words: Words, folder: Path) -> None:
    """labels.tsv, or labels_train.tsv and labels_test.tsv, of the entities a graph has."""
    there = graph.entities.places(word[0] for word in words) >= 0
    kept = [word for word, known in zip(words, there.tolist()) if known]
    for fold in sorted({word[2] for word in kept}):
        lines = "".join(f"{entity}\t{label}\n" for entity, label, own in kept if own == fold)
        write_text(folder / (f"labels_{fold}.tsv" if fold in SPLITS else "labels.tsv"), lines)


def _file(folder: Path, name: str) -> Path | None:
    found = [folder / f"{name}{end}" for end in (".tsv", ".tsv.gz", ".txt")]
    return next((path for path in found if path.is_file()), None)


def _labels(graph: Graph, parts: list[tuple[Path, str]]) -> Labels:
    rows: list[tuple[str, str, str]] = []
    for path, fold in parts:
        for number, line in enumerate(_lines(path), 1):
            words = line.split("\t")
            if len(words) < 2 or not words[0] or not words[1]:
                raise InputError(
                    f"line {number} of {path}: expected an entity and its label with a tab between them, found {line[:80]!r}."
                )
            rows.append((words[0], words[1], fold))
    at = graph.entities.places(row[0] for row in rows)
    bare = graph.entities.places(f"<{row[0]}>" for row in rows)  # tables of RDF terms
    at = np.where(at >= 0, at, bare)
    if not rows:
        raise InputError(f"{parts[0][0]} is empty.")
    there = np.flatnonzero(at >= 0)
    if not len(there):
        raise InputError(
            f"{parts[0][0]} labels {len(rows)} entities and none of them is in the graph (the first is {rows[0][0]!r}): is it the "
            "right table?"
        )
    names = sorted({rows[i][1] for i in there})
    code = {name: i for i, name in enumerate(names)}
    marked = [(at[i], code[rows[i][1]], SPLITS.index(rows[i][2]) if rows[i][2] else 0) for i in there]
    pairs = np.unique(np.array(marked, np.int64), axis=0)
    folds = np.array(SPLITS)[pairs[:, 2]] if parts[0][1] else None
    return Labels(pairs[:, 0], pairs[:, 1], names, folds)


def _lines(path: Path) -> list[str]:
    try:
        with opened(path) as file, io.TextIOWrapper(file, "utf-8") as lines:
            return [line.rstrip("\r\n") for line in lines if line.strip()]
    except (OSError, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def labels_by(graph: Graph, path: str) -> Labels:
    """Labels at the end of a path of relations, ``admittedTo/wardOf``: every entity it begins at has the labels it ends at."""
    names = [name for name in path.split("/") if name]
    if not names:
        raise InputError(
            f"{path!r} is no path: name relations with / between them, such as admittedTo/wardOf."
        )
    pairs: np.ndarray | None = None
    for name in names:
        step = graph.triples[graph.triples[:, 1] == graph.relations.id(name)][:, [0, 2]].astype(np.int64)
        pairs = step if pairs is None else _joined(pairs, step)
    assert pairs is not None
    pairs = np.unique(pairs, axis=0)
    if not len(pairs):
        raise InputError(f"no entity has a label by {path!r}: no two of its statements meet.")
    ends, label = np.unique(pairs[:, 1], return_inverse=True)
    return Labels(pairs[:, 0], label, [graph.entities[i] for i in ends.tolist()])


def _joined(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Pairs (a, c) for (a, b) and (b, c)."""
    right = right[np.argsort(right[:, 0], kind="stable")]
    start, end = (np.searchsorted(right[:, 0], left[:, 1], side) for side in ("left", "right"))
    many = end - start
    which = np.repeat(np.arange(len(left)), many)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(many) - many, many)
    return np.stack([left[which, 0], right[start[which] + offset, 1]], 1)
