"""How much a source may become: so that a few bytes from a stranger cannot take a machine's memory.

Each has a default that honest data does not reach, and ``VEILGRAPH_LIMITS="decompressed=64G,text=16M"`` raises them.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from veilgraph.errors import ConfigError, InputError, ReadError

VARIABLE = "VEILGRAPH_LIMITS"
DEFAULTS: Mapping[str, int] = {
    "decompressed": 16 << 30,  # bytes a compressed file may become
    "ratio": 100,  # times its size; sixteen mebibytes are always allowed
    "text": 1 << 16,  # bytes of one name
    "nesting": 100,  # of lists in lists, in YAML, JSON and RDF
    "nodes": 1_000_000,  # values of a YAML file, aliases followed
    "rows": 10_000_000,  # of one client of a federation; where nobody raises it, also what an eighth of the server's memory holds
    "entity": 200,  # characters of a DTD entity, which may not name another
    "query": 300,  # seconds of a rule's SPARQL query
}
PACKED = (
    b"\x1f\x8b",
    b"x\x01",
    b"x^",
    b"x\x9c",
    b"x\xda",
    b"\x28\xb5\x2f\xfd",
)  # gzip, zlib at four levels, Zstandard
WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
LONGEST_NUMBER = 100  # characters
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def limit(name: str) -> int:
    """What holds now."""
    return _chosen().get(name, DEFAULTS[name])


def is_chosen(name: str) -> bool:
    """Whether somebody said how much."""
    return name in _chosen()


def _chosen() -> dict[str, int]:
    found = {}
    for part in filter(None, re.split(r"[,\s]+", os.environ.get(VARIABLE, ""))):
        fits = re.fullmatch(r"(\w+)=(\d+)([KMGT]?)", part)
        if fits is None or fits[1] not in DEFAULTS:
            raise ConfigError(
                f"{VARIABLE} says {part!r}: expected NAME=NUMBER with names among {', '.join(DEFAULTS)}, and K, M, G or T behind numbers."
            )
        found[fits[1]] = int(fits[2]) * UNITS[fits[3]]
    return found


def beyond(what: object, problem: str, name: str, found: str) -> InputError:
    """The error that says so, and how to allow it."""
    return InputError(
        f"{what}: {problem} ({found}; at most {limit(name):,} are allowed). If you trust the source, allow more: {VARIABLE}={name}=NUMBER."
    )


# --- compressed files ---------------------------------------------------------------------------------------------------
class Bounded(io.RawIOBase):
    """What a compressed file holds, up to a limit."""

    def __init__(self, file: Any, size: int, source: str) -> None:
        self.file, self.source, self.read_so_far = file, source, 0
        self.most = min(limit("decompressed"), max(1 << 24, size * limit("ratio")))
        self.by_ratio = self.most < limit("decompressed")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.file.read(len(buffer))
        self.read_so_far += len(data)
        if self.read_so_far > self.most:
            name = "ratio" if self.by_ratio else "decompressed"
            raise beyond(
                self.source, "becomes too much when it is unpacked", name, f"more than {self.most:,} bytes"
            )
        buffer[: len(data)] = data
        return len(data)


def opened(path: Path) -> BinaryIO:
    """A file to read from; what is gzipped is unpacked on the way, up to its limit."""
    if path.suffix != ".gz":
        return path.open("rb")
    source = gzip.open(path, "rb")  # noqa: SIM115
    return io.BufferedReader(Bounded(source, path.stat().st_size, str(path)), 1 << 20)


def content(path: Path) -> Path | io.BytesIO:
    """What a reader of tables is given: the file, or what it unpacks to; never something that the reader would unpack by itself.

    (Polars looks at the first bytes of whatever it is given, and knows no limit.)
    """
    if path.suffix != ".gz":
        with path.open("rb") as file:
            _refuse_packed(path, file.read(4))
        return path
    with opened(path) as file:
        found = file.read()
    _refuse_packed(path, found[:4])
    return io.BytesIO(found)


def _refuse_packed(path: Path, first: bytes) -> None:
    if first.startswith(PACKED):
        once_more = "once more " if path.suffix == ".gz" else ""
        raise ReadError(
            path,
            f"is compressed {once_more}(its first bytes say so), which its name alone may say, once: nobody could say how much it becomes. "
            "Unpack it, or give it a name that ends with .gz if it was gzipped.",
        )


# --- YAML ---------------------------------------------------------------------------------------------------------------
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain values only; aliases count as what they stand for, and nothing is nested without end.

    Whole numbers are decimal and short: what YAML 1.1 takes for numbers of base 60 (12:30), 16, 8 or 2 stays text, and whoever wants a
    number there says so. (Of base 60, a megabyte took hours; of base 16, nobody could even say what was wrong with it.)
    """

    def whole(self, node: Any) -> int | str:
        text = self._short(node)
        return int(text) if WHOLE.fullmatch(text) else text

    def decimal(self, node: Any) -> Any:
        return text if ":" in (text := self._short(node)) else self.construct_yaml_float(node)

    def _short(self, node: Any) -> str:
        text = str(self.construct_scalar(node))
        if len(text) > LONGEST_NUMBER:
            raise InputError(
                f"this YAML holds a number of {len(text):,} characters: no number here needs more than {LONGEST_NUMBER}."
            )
        return text


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.whole)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.decimal)


def read_yaml_text(text: str) -> Any:
    """The value of a YAML text."""
    loader = _Loader(text)
    try:
        _count_events(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _size(node, {}, 0)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _count_events(text: str) -> None:
    """Raise where lists are nested too deeply: before anything recurses into them."""
    depth = 0
    for event in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > limit("nesting"):
            raise beyond(
                "this YAML", "is nested too deeply", "nesting", f"more than {limit('nesting')} levels"
            )


def _size(node: Any, known: dict[int, int], depth: int) -> int:
    """How many values a node stands for."""
    if id(node) in known:
        if known[id(node)] < 0:
            raise InputError("this YAML contains itself.")
        return known[id(node)]
    known[id(node)] = -1
    total = 1
    for child in _children(node):
        total += _size(child, known, depth + 1)
    if total > limit("nodes"):
        raise beyond("this YAML", "stands for too many values", "nodes", f"{total:,}")
    known[id(node)] = total
    return total


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
