"""Files that are written whole or not at all, and lines that are on disk when the call returns."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veilgraph.errors import InputError, RunError


def check_file(path: str | Path | None) -> None:
    """Refuse, before any work is done, a file that could not be written in the end."""
    if path is None:
        return
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder: name the file to write, e.g. {Path(path) / 'out'}.")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {Path(path).parent}. Make it first.")


def write_text(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Replace a file in one step; ``mode`` (less the umask) says who may read it."""
    check_file(path)
    draft = path.with_name(path.name + ".tmp")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def as_json(value: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_json(path: Path, value: Any, *, mode: int = 0o666) -> None:
    """Replace a JSON file in one step."""
    write_text(path, as_json(value), mode=mode)


def write_tensors(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Replace a safetensors file in one step."""
    from safetensors.torch import save_file

    draft = path.with_name(path.name + ".tmp")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, draft, dict(metadata or {}))
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(path)


def read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Tensors and metadata of a safetensors file."""
    with _opened(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118


@contextmanager
def _opened(path: Path, framework: str) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework=framework) as file:
            yield file
    except SafetensorError as error:
        raise RunError(f"{path} is damaged and cannot be read ({error}).") from None


def write_arrays(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Replace a safetensors file of NumPy arrays in one step; only its owner may read it."""
    from safetensors.numpy import save

    draft = path.with_name(path.name + ".tmp")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(save(dict(arrays), dict(metadata or {})))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The same as ``read_tensors``, as NumPy arrays and without PyTorch."""
    with _opened(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118


def read_parquet(path: Path, columns: list[str] | None = None) -> Any:
    """A Parquet file as an Arrow table (without pandas, which pyarrow's own read_table brings along)."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=True) as file:
        return file.read(columns)


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Add one JSON line and see it on disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file; a last line cut off by a crash is left out."""
    if not path.exists():
        return []
    out = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            out.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return out
