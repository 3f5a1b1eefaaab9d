"""Files that are written whole or not at all, for whom they are meant from their first byte; lines that are on disk on return.

Every write of the program goes through ``written`` or ``append_line``: a full disk is one sentence wherever it happens, and what was
there before stays. What lies in a folder of ours is as readable as the table in ``layout`` says.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from veilgraph.disk import digest, explained, sync
from veilgraph.errors import ConfigError, InputError, RunError, UsageError, VerificationError
from veilgraph.layout import mode_of
from veilgraph.limits import read_yaml_text
from veilgraph.parquet import require_modest

ABOUT = "veilgraph"  # in the header of our tensors: what is said of them
SUM = "sha256"  # among that: of every byte but its own digits
NO_SUM = "0" * 64
SEPARATORS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")  # of cells and of lines, to some program
LINE_SUM = "sum"  # at the end of our JSON lines


def check_file(path: str | Path | None) -> None:
    """Refuse, before any work is done, a file that could not be written in the end."""
    if path is None:
        return
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder: name the file to write, e.g. {Path(path) / 'out'}.")
    if not Path(path).parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {Path(path).parent}. Make it first.")


def check_new(path: str | Path | None, *, force: bool = False) -> None:
    """The same, and refuse one that is there already, which may be somebody's work, unless ``force`` says to replace it."""
    check_file(path)
    if path is not None and not force and os.path.lexists(path):
        raise UsageError(
            f"{path} exists already, and whoever wrote it may want to keep it. Nothing was replaced: name another file, or add --force."
        )


# --- whole files ------------------------------------------------------------------------------------------------------
@contextmanager
def written(path: Path, *, mode: int | None = None) -> Iterator[Path]:
    """A draft beside the file, which takes its place, on disk, when the block ends well; else nothing has changed.

    ``mode`` (less the umask) says who may read it; where it is left out, the table of files does.
    """
    check_file(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    _sweep(path)
    with explained(path):
        try:
            asked = mode_of(path.name) if mode is None else mode
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, asked)
            allowed = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.close(descriptor)
            yield draft
            draft.chmod(allowed)  # (some libraries put another file in its place)
            sync(draft)
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        sync(path.parent)


def _sweep(path: Path) -> None:
    """Remove drafts of this file whose writers are gone."""
    for draft in path.parent.glob(f".{path.name}.*-*.tmp"):
        owner = draft.name.removeprefix(f".{path.name}.").partition("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


def is_left(path: Path) -> bool:
    """Whether a draft's writer is gone."""
    owner = path.name.removesuffix(".tmp").rpartition(".")[2].partition("-")[0]
    return owner.isdigit() and not _alive(int(owner))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def write_text(path: Path, text: str, *, mode: int | None = None) -> None:
    """Replace a file in one step."""
    with written(path, mode=mode) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        file.write(text)


def cell(name: str) -> str:
    """A name as it is written into a table of ours; what some program takes for the end of a cell or a row, as a JSON string.

    No two names are written alike: what already looks like such a string is written as one.
    """
    alike = name.startswith('"') and name.endswith('"') and "\\" in name
    return json.dumps(name) if alike or SEPARATORS & set(name) else name


def as_json(value: Any) -> str:
    """The text of a JSON file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_json(path: Path, value: Any, *, mode: int | None = None) -> None:
    """Replace a JSON file in one step."""
    write_text(path, as_json(value), mode=mode)


def write_table(path: Path, table: Any, *, mode: int | None = None, **options: Any) -> None:
    """Replace a Parquet file in one step."""
    import pyarrow.parquet as pq

    with written(path, mode=mode) as draft:
        pq.write_table(table, draft, **options)


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Add one JSON line, with a sum, and see it on disk."""
    append_bytes(path, line_of(value)[0])


def append_bytes(path: Path, data: bytes, keep: int | None = None) -> None:
    """Add to a file and see it on disk; ``keep`` is how much of it stays before: half a line behind that goes, whole ones are refused.

    Writers wait for each other: what one finds is what it adds to.
    """
    with explained(path):
        new = not path.exists()
        create = 0 if keep else os.O_CREAT
        descriptor = os.open(path, os.O_RDWR | create | os.O_APPEND, mode_of(path.name))
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # (until it is closed)
            before = file.seek(0, os.SEEK_END)
            if keep is not None and before != keep:
                _require_half_behind(descriptor, path, before, keep)
                file.truncate(before := keep)
            try:
                if file.write(data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
                os.fsync(file.fileno())
            except OSError:  # half a line is none
                with contextlib.suppress(OSError):
                    file.truncate(before)
                raise
        if new:
            sync(path.parent)


def _require_half_behind(descriptor: int, path: Path, size: int, keep: int) -> None:
    """Raise unless all that stands behind what is known is a line without its end, which was never used."""
    if size < keep or b"\n" in os.pread(descriptor, size - keep, keep):
        raise VerificationError(
            f"{path} was written by somebody else meanwhile: what was spent is not what it was. Start again, when nobody else does."
        )


def line_of(value: Mapping[str, Any], before: str = "") -> tuple[bytes, str]:
    """A JSON line that ends with a sum of itself and of the sum ``before``; and that sum."""
    body = json.dumps(value, ensure_ascii=False)
    found = _line_sum(body, before)
    return f'{body[:-1]}{", " if value else ""}"{LINE_SUM}": "{found}"}}\n'.encode(), found


def value_of(line: str, before: str = "") -> tuple[dict[str, Any], str]:
    """What a line says, and its sum («» where it has none, as lines of earlier versions). Raises ValueError where they do not fit."""
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    said = found.pop(LINE_SUM, None)
    if said is None:
        if before or re.search(r'": "[0-9a-f]{16}"\}$', line):  # (a sum, under a name that was damaged)
            raise ValueError("its sum is missing")
        return found, ""
    if line_of(found, before)[0].decode() != line + "\n":
        raise ValueError("it is not what was written: its sum does not fit")
    return found, str(said)


def require_half(rest: str, before: str = "") -> None:
    """Raise EOFError if what stands behind the last line end is a whole line: it was not cut off by a crash, its end was damaged."""
    for line in {rest, rest[:-1]} if rest else ():
        with contextlib.suppress(ValueError, RecursionError):
            if value_of(line, before)[1]:
                raise EOFError("the end of its last line is gone")


def _line_sum(body: str, before: str) -> str:
    return hashlib.sha256((before + body).encode()).hexdigest()[:16]


# --- tensors, with a sum of their own -----------------------------------------------------------------------------------
def write_tensors(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Replace a safetensors file in one step; its header holds a SHA-256 of all the rest."""
    from safetensors.torch import save_file

    with written(path) as draft:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, draft, _about(metadata))
        _add_sum(draft)


def write_arrays(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """The same for NumPy arrays; only its owner may read it."""
    from safetensors.numpy import save_file

    with written(path, mode=0o600) as draft:
        save_file(dict(arrays), draft, _about(metadata))
        _add_sum(draft)


def _about(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """One entry, because the library writes several in any order: the same content is the same file."""
    return {ABOUT: json.dumps({**(metadata or {}), SUM: NO_SUM})}


def _add_sum(path: Path) -> None:
    with path.open("r+b") as file:
        place = _place_of_sum(file)
        assert place is not None
        found = hashlib.file_digest(
            file, "sha256"
        ).hexdigest()  # (from the start: _place_of_sum leaves it there)
        file.seek(place)
        file.write(found.encode())


def _place_of_sum(file: Any) -> int | None:
    """Where in a safetensors file the digits of its sum begin; None where it has none. Leaves the file at its start."""
    length = int.from_bytes(file.read(8), "little")
    header = file.read(min(length, 1 << 26))
    file.seek(0)
    before = f'\\"{SUM}\\": \\"'.encode()
    place = header.find(before)
    return None if place < 0 else 8 + place + len(before)


def require_sum(path: Path) -> None:
    """Raise if a file of tensors is not what was written; files of earlier versions have no sum."""
    with path.open("rb") as file:
        place = _place_of_sum(file)
        if place is None:
            return
        found = hashlib.sha256(file.read(place))
        said = file.read(64)
        found.update(NO_SUM.encode())
        while block := file.read(1 << 22):
            found.update(block)
    if said != found.hexdigest().encode():
        raise RunError(
            f"{path} is damaged: its content is not what was written. Restore it, or make it again."
        )


def read_tensors(path: Path, known: str | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Tensors and metadata of a safetensors file, compared with the hash that is ``known`` of it, or else with its own sum."""
    return _read(path, "pt", known)


def read_arrays(path: Path, known: str | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """The same as ``read_tensors``, as NumPy arrays and without PyTorch."""
    return _read(path, "np", known)


def _read(path: Path, framework: str, known: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Hashes while it reads."""
    with ThreadPoolExecutor(1) as beside:
        whole = (
            beside.submit(require_sum, path) if known is None else beside.submit(require_hash, path, known)
        )
        found = _content(path, framework)
        whole.result()
    return found


def require_hash(path: Path, known: str) -> None:
    """Raise if a file is not the one whose hash is known."""
    if digest(path) != known:
        raise VerificationError(
            f"{path} is damaged: it is not what was certified. Put the file back as it was, or train again."
        )


def _content(path: Path, framework: str) -> tuple[dict[str, Any], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework=framework) as file:
            names = list(file.keys())
            metadata = dict(file.metadata() or {})
            if ABOUT in metadata:
                said = json.loads(metadata[ABOUT])
                if not isinstance(said, dict):
                    raise ValueError("its header holds no «key: value» pairs")
                metadata = {k: v for k, v in said.items() if k != SUM}
            return {name: file.get_tensor(name) for name in names}, metadata
    except (SafetensorError, OverflowError, MemoryError, ValueError, RecursionError, TypeError) as error:
        raise RunError(f"{path} is damaged and cannot be read ({error}).") from None


# --- reading ------------------------------------------------------------------------------------------------------------
def read_parquet(path: Path, columns: list[str] | None = None, *, rows: int | None = None) -> Any:
    """A Parquet file as an Arrow table (without pandas, which pyarrow's own read_table brings along), which has so many ``rows``."""
    import pyarrow.parquet as pq

    require_modest(path, columns, rows)
    with pq.ParquetFile(path, memory_map=True) as file:
        return file.read(columns)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged and cannot be read ({error}).") from None
    if not isinstance(found, dict):
        raise RunError(f"{path} is damaged: it holds no «key: value» pairs.")
    return found


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file; a last line cut off by a crash is left out, any other damage is an error."""
    if not path.exists():
        return []
    out = []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            if number < len(lines):
                out.append(value_of(line)[0])
            else:
                require_half(line)
        except (ValueError, RecursionError, EOFError) as error:
            raise RunError(
                f"line {number} of {path} is damaged ({error}). It is needed for pictures alone: delete the file to do without."
            ) from None
    return out


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    try:
        found = read_yaml_text(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"{path} must hold «key: value» lines, found {type(found).__name__}")
    return found
