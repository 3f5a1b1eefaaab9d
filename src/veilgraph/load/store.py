"""The graph folder: Parquet files that are read through a memory map, written whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from veilgraph.errors import RunError, UsageError
from veilgraph.files import read_parquet
from veilgraph.load.graph import Graph
from veilgraph.load.marks import Marks
from veilgraph.load.vocabulary import Vocabulary

MANIFEST, MARKS = "graph.yaml", "marks.yaml"


def is_graph_folder(path: str | Path) -> bool:
    """Whether a folder holds a saved graph."""
    return (Path(path) / MANIFEST).is_file()


def check_target(folder: str | Path, *, force: bool) -> None:
    """Refuse, before any work is done, to write where something else is."""
    path = Path(folder)
    if (
        path.exists()
        and not (force and is_graph_folder(path))
        and not (path.is_dir() and not any(path.iterdir()))
    ):
        remedy = "Add --force to replace it." if is_graph_folder(path) else "Choose another name."
        raise UsageError(
            f"{folder} exists already{' and is no graph' if not is_graph_folder(path) else ''}. {remedy}"
        )


def save(graph: Graph, folder: str | Path, *, force: bool = False) -> Path:
    """Write the graph into a new folder and put it in place by renaming."""
    target = Path(folder).resolve()
    check_target(target, force=force)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        columns: dict[str, Any] = {"name": graph.entities.array}
        if graph.descriptions is not None:
            columns["description"] = graph.descriptions
        _write(pa.table(columns), draft / "entities.parquet")
        _write(pa.table({"name": graph.relations.array}), draft / "relations.parquet")
        for split, array in graph.splits.items():
            columns = {c: pa.array(array[:, i]) for i, c in enumerate(("head", "relation", "tail"))}
            if graph.marks is not None:
                columns["confidential"] = pa.array(graph.secret(split))
            _write(pa.table(columns), draft / f"{split}.parquet")
        manifest = {
            "kind": "veilgraph graph",
            "version": 1,
            "source": graph.source,
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "splits": {split: len(array) for split, array in graph.splits.items()},
            "fingerprint": graph.fingerprint,
            **({"extra": dict(graph.extra)} if graph.extra else {}),
        }
        if graph.marks is not None:
            document = yaml.safe_dump(graph.marks.document, sort_keys=False, allow_unicode=True)
            (draft / MARKS).write_text(document, encoding="utf-8")
        (draft / MANIFEST).write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
            target.replace(old)
            draft.replace(target)
            shutil.rmtree(old)
        else:
            draft.replace(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    target.chmod(0o755)
    return target


def open_graph(folder: str | Path) -> Graph:
    """Read a saved graph through a memory map."""
    path = Path(folder)
    try:
        manifest = yaml.safe_load((path / MANIFEST).read_text(encoding="utf-8"))
        entities = read_parquet(path / "entities.parquet")
        relations = read_parquet(path / "relations.parquet")
        splits = {split: _read_split(path / f"{split}.parquet") for split in manifest["splits"]}
        descriptions = None
        if "description" in entities.column_names:
            descriptions = entities["description"].combine_chunks()
        graph = Graph(
            Vocabulary(entities["name"].combine_chunks(), "entity"),
            Vocabulary(relations["name"].combine_chunks(), "relation"),
            splits,
            descriptions,
            str(folder),
            manifest.get("extra") or {},
            _read_marks(path, splits),
        )
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException, yaml.YAMLError) as error:
        raise RunError(
            f"{folder} is not a readable graph folder: {error}. Load the source again with veil load."
        ) from None
    _check_ids(graph, folder)
    return graph


def _read_marks(path: Path, splits: dict[str, np.ndarray]) -> Marks | None:
    """The marks beside the statements; their rules are re-read, their masks are what counts."""
    if not (path / MARKS).is_file():
        return None
    document = yaml.safe_load((path / MARKS).read_text(encoding="utf-8"))
    masks = {}
    for split, array in splits.items():
        mask = read_parquet(path / f"{split}.parquet", ["confidential"])["confidential"]
        masks[split] = mask.to_numpy().astype(bool)
        if len(masks[split]) != len(array) or int(masks[split].sum()) != document["confidential"][split]:
            raise ValueError(f"{MARKS} and the marks in {split}.parquet do not agree")
    decided = tuple(str(line) for line in document.get("decided_from", ()))
    return Marks(masks, str(document["unit"]), int(document["per_unit"]), tuple(document["rules"]), decided)


def _check_ids(graph: Graph, folder: str | Path) -> None:
    """A damaged folder must not become an index error in the middle of training."""
    limits = np.array([len(graph.entities), len(graph.relations), len(graph.entities)])
    for split, array in graph.splits.items():
        if len(array) and ((array < 0).any() or (array >= limits).any()):
            raise RunError(
                f"{folder}: {split}.parquet names ids that are not in the vocabulary. Load the source again."
            )


def _write(table: Any, path: Path) -> None:
    pq.write_table(
        table, path, compression="zstd" if "name" in table.column_names else "none", use_dictionary=False
    )


def _read_split(path: Path) -> np.ndarray:
    table = read_parquet(path)
    out = np.empty((len(table), 3), np.int32)
    for i, column in enumerate(("head", "relation", "tail")):
        out[:, i] = table[column].to_numpy()
    return out
