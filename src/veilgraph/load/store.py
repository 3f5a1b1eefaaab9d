"""The graph folder: Parquet files that are read through a memory map, written whole or not at all."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from veilgraph.disk import digest, sealed
from veilgraph.errors import InputError, RunError, UsageError
from veilgraph.files import read_parquet, write_table, write_text
from veilgraph.folders import made, refuse_to_replace
from veilgraph.layout import CLOSED, GRAPH, LABELS, MANIFEST, MARKS, File
from veilgraph.limits import read_yaml_text
from veilgraph.load.graph import Graph, is_split_name
from veilgraph.load.manifest import VERSION, read_manifest
from veilgraph.load.marks import Marks
from veilgraph.load.vocabulary import Vocabulary


def is_graph_folder(path: str | Path) -> bool:
    """Whether a folder holds a saved graph."""
    return (Path(path) / MANIFEST).is_file()


def check_target(folder: str | Path, *, force: bool) -> None:
    """Refuse, before any work is done, to write where something else is, and to replace what this program did not write."""
    path = Path(folder).resolve()
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not is_graph_folder(path):
        raise UsageError(f"{folder} exists already and is no graph. Choose another name.")
    if not force:
        raise UsageError(f"{folder} exists already. Add --force to replace it.")
    refuse_to_replace(path, files_of(path))


def files_of(path: Path) -> tuple[File, ...]:
    """What this program wrote into the folder of a graph: of Parquet files those its manifest names."""
    try:
        splits = [str(name) for name in read_manifest(path)["splits"]]
    except (OSError, KeyError, TypeError, ValueError, yaml.YAMLError, InputError):
        splits = ["train", "valid", "test"]  # (of a damaged one: what there usually is)
    tables = [File(f"{name}.parquet", False, False, "") for name in ("entities", "relations", *splits)]
    return (*(file for file in GRAPH if "*" not in file.name), *tables, *LABELS)


def seen(folder: str | Path) -> str | None:
    """Which saved graph is there now: for ``save`` to see that it is still the one that was read."""
    path = Path(folder) / MANIFEST
    return digest(path) if path.is_file() else None


def save(graph: Graph, folder: str | Path, *, force: bool = False, instead_of: str | None = None) -> Path:
    """Write the graph into a folder that appears whole, for its owner alone; with ``force`` in the place of a graph that is there.

    Labels that lie beside the graph that is replaced stay. ``instead_of`` is what was ``seen`` there when the graph was read: another one
    that somebody saved meanwhile is not lost to an older one.
    """
    target = Path(folder).resolve()
    check_target(target, force=force)
    ours = files_of(target) if force and target.exists() else None
    with made(target, mode=CLOSED, replacing=ours) as draft:
        write_graph(graph, draft)
        for path in target.glob(LABELS[0].name) if target.is_dir() else ():
            shutil.copy2(path, draft / path.name)
        if instead_of is not None and seen(target) != instead_of:
            raise UsageError(
                f"{folder} was changed by somebody else meanwhile: nothing was replaced. Do it again, with what is there now."
            )
    return target


def write_graph(graph: Graph, draft: Path) -> None:
    """The files of a graph, into a folder that is being made."""
    columns: dict[str, Any] = {"name": graph.entities.array}
    if graph.descriptions is not None:
        columns["description"] = graph.descriptions
    _write(pa.table(columns), draft / "entities.parquet")
    _write(pa.table({"name": graph.relations.array}), draft / "relations.parquet")
    for split, array in graph.splits.items():
        if not is_split_name(
            split
        ):  # (Graph has looked; a file that is written elsewhere would be somebody's)
            raise InputError(f"no split can be called {split!r}.")
        columns = {c: pa.array(array[:, i]) for i, c in enumerate(("head", "relation", "tail"))}
        if graph.marks is not None:
            columns["confidential"] = pa.array(graph.secret(split))
        if (weight := graph.weight(split)) is not None:
            columns["weight"] = pa.array(weight)
        _write(pa.table(columns), draft / f"{split}.parquet")
    if graph.marks is not None:
        document = yaml.safe_dump(graph.marks.document, sort_keys=False, allow_unicode=True)
        write_text(draft / MARKS, document)
    manifest = {
        "kind": "veilgraph graph",
        "version": VERSION,
        "source": graph.source,
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "splits": {split: len(array) for split, array in graph.splits.items()},
        "fingerprint": graph.fingerprint,
        **({"extra": dict(graph.extra)} if graph.extra else {}),
        "hashes": {path.name: digest(path) for path in sorted(draft.iterdir())},
    }
    write_text(draft / MANIFEST, sealed(yaml.safe_dump(manifest, sort_keys=False)))


def open_graph(folder: str | Path) -> Graph:
    """Read a saved graph through a memory map, after its files were compared with what was written."""
    path = Path(folder)
    try:
        manifest = read_manifest(path)
        _require_unchanged(path, manifest)
        entities = read_parquet(path / "entities.parquet", rows=manifest["entities"])
        relations = read_parquet(path / "relations.parquet", rows=manifest["relations"])
        splits = {
            split: _read_split(path / f"{split}.parquet", rows) for split, rows in manifest["splits"].items()
        }
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
            _read_weights(path, splits),
        )
        if manifest["version"] < 2 and graph.fingerprint != manifest["fingerprint"]:
            raise ValueError("its statements or names are not those that were saved")
    except (
        OSError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        pa.ArrowException,
        yaml.YAMLError,
    ) as error:
        raise _unreadable(folder, str(error)) from None
    _check_ids(graph, folder)
    return graph


def _unreadable(folder: object, why: str) -> RunError:
    return RunError(
        f"{folder} is not a readable graph folder: {why}. Restore it from a copy, or load the source again with veil load. "
        f"(veil doctor {folder} says what is whole.)"
    )


def damaged(path: Path) -> list[str]:
    """Files of a saved graph that are gone, or are not what was written."""
    hashes = read_manifest(path).get("hashes", {})
    there = [name for name in hashes if (path / name).is_file() and (path / name).stat().st_size]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(there, pool.map(lambda name: digest(path / name), there)))
    return [name for name, said in hashes.items() if found.get(name) != said]


def _require_unchanged(path: Path, manifest: dict[str, Any]) -> None:
    if manifest["version"] > 1 and (found := damaged(path)):
        raise ValueError(f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} not what was written")


def _read_marks(path: Path, splits: dict[str, np.ndarray]) -> Marks | None:
    """The marks beside the statements; their rules are re-read, their masks are what counts."""
    if not (path / MARKS).is_file():
        return None
    document = read_yaml_text((path / MARKS).read_text(encoding="utf-8"))
    masks = {}
    for split, array in splits.items():
        mask = read_parquet(path / f"{split}.parquet", ["confidential"])["confidential"]
        masks[split] = mask.to_numpy().astype(bool)
        if len(masks[split]) != len(array) or int(masks[split].sum()) != document["confidential"][split]:
            raise ValueError(f"{MARKS} and the marks in {split}.parquet do not agree")
    decided = tuple(str(line) for line in document.get("decided_from", ()))
    return Marks(masks, str(document["unit"]), int(document["per_unit"]), tuple(document["rules"]), decided)


def _read_weights(path: Path, splits: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """How much statements count, where that was written."""
    told = [split for split in splits if "weight" in pq.read_schema(path / f"{split}.parquet").names]
    if not told:
        return None
    found = {split: np.ones(len(array), np.float32) for split, array in splits.items()}
    for split in told:
        table = read_parquet(path / f"{split}.parquet", ["weight"])
        found[split] = table["weight"].to_numpy().astype(np.float32)
    if not all((np.isfinite(one) & (one >= 0) & (one <= 1)).all() for one in found.values()):
        raise ValueError("weights of statements are numbers from 0 to 1")
    return found


def _check_ids(graph: Graph, folder: str | Path) -> None:
    """A damaged folder must not become an index error in the middle of training."""
    limits = np.array([len(graph.entities), len(graph.relations), len(graph.entities)])
    for split, array in graph.splits.items():
        if len(array) and ((array < 0).any() or (array >= limits).any()):
            raise RunError(
                f"{folder}: {split}.parquet names ids that are not in the vocabulary. Load the source again."
            )


def _write(table: Any, path: Path) -> None:
    names = "name" in table.column_names
    write_table(path, table, compression="zstd" if names else "none", use_dictionary=False)


def _read_split(path: Path, rows: int) -> np.ndarray:
    table = read_parquet(path, ["head", "relation", "tail"], rows=rows)
    out = np.empty((len(table), 3), np.int32)
    for i, column in enumerate(("head", "relation", "tail")):
        out[:, i] = table[column].to_numpy()
    return out
