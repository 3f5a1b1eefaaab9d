"""What the first file of a saved graph may say: names of files beside it, never a way to others; and of everything else the right kind.

A folder may be a stranger's. What its manifest says is made into paths, into numbers of rows to read and into sentences, so all of it
is looked at once, here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilgraph.disk import is_sealed
from veilgraph.layout import MANIFEST, MARKS
from veilgraph.limits import read_yaml_text
from veilgraph.load.graph import DECIDED_FROM, DECIDED_UNDER, HELD_OUT, is_split_name

VERSION = 2  # 2: hashes of every file
NAMES = ("entities", "relations")  # files beside those of splits
FILE = re.compile(r"\w[\w.-]{0,199}")


def read_manifest(folder: Path) -> dict[str, Any]:
    """What graph.yaml says; ValueError where it cannot be what this program wrote."""
    text = (folder / MANIFEST).read_text(encoding="utf-8")
    found = read_yaml_text(text)
    if not isinstance(found, dict) or not _whole(found.get("version")):
        raise ValueError(f"{MANIFEST} does not say what it is")
    if not 1 <= found["version"] <= VERSION:
        raise ValueError(
            f"{MANIFEST} is of version {found['version']}, and this program knows {VERSION} at most"
        )
    if found["version"] > 1 and not is_sealed(text):
        raise ValueError(f"{MANIFEST} is not what was written")
    _require_files(folder, found)
    _require_extra(found.get("extra") or {})
    return found


def _require_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Splits and hashes are of files in this folder, and every file that is read has a hash."""
    splits, hashes = manifest.get("splits"), manifest.get("hashes", {})
    if not isinstance(splits, dict) or not all(map(is_split_name, splits)) or not _numbers(splits.values()):
        raise ValueError(
            f"{MANIFEST} names splits that are no plain names, or does not say how many rows they have"
        )
    if not _numbers(manifest.get(name) for name in NAMES):
        raise ValueError(f"{MANIFEST} does not say how many names there are")
    if not isinstance(hashes, dict) or not all(
        isinstance(name, str) and FILE.fullmatch(name) and isinstance(said, str)
        for name, said in hashes.items()
    ):
        raise ValueError(f"{MANIFEST} has hashes of what is no file of a graph")
    if manifest["version"] > 1:
        marks = [MARKS] if (folder / MARKS).is_file() else []
        without = {*(f"{name}.parquet" for name in (*NAMES, *splits)), *marks} - hashes.keys()
        if without:
            raise ValueError(f"{MANIFEST} has no hash of {', '.join(sorted(without))}")


def _require_extra(extra: Any) -> None:
    if not isinstance(extra, dict):
        raise ValueError(f"{MANIFEST} says «extra» and no «key: value» pairs")
    mapping, under = extra.get("mapping", "a"), extra.get(DECIDED_UNDER, [])
    fits = {
        "mapping": isinstance(mapping, str) and Path(mapping).name == mapping,
        "left_out": _strings(extra.get("left_out", [])),
        DECIDED_FROM: _strings(extra.get(DECIDED_FROM, [])),
        DECIDED_UNDER: isinstance(under, list)
        and all(isinstance(one, dict) and _strings([one.get("what"), one.get("open")]) for one in under),
        HELD_OUT: isinstance(extra.get(HELD_OUT, []), list) and _numbers(extra.get(HELD_OUT, [])),
    }
    wrong = [name for name, is_right in fits.items() if not is_right]
    if wrong:
        raise ValueError(f"{MANIFEST} says something else under «{wrong[0]}» than belongs there")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(values: Any) -> bool:
    return all(_whole(value) and 0 <= value < 1 << 48 for value in values)


def _strings(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
