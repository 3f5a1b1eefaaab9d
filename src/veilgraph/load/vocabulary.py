"""Names ↔ ids: an immutable, sorted list of distinct names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilgraph.errors import UnknownNameError
from veilgraph.files import write_table


class Vocabulary(Sequence[str]):
    """Distinct names in sorted order; the id of a name is its position.

    >>> Vocabulary(["ward", "doctor"]).id("ward")
    1
    """

    def __init__(self, names: Iterable[str] | Any, kind: str = "entity") -> None:
        array = names if isinstance(names, pa.Array) else pa.array(sorted(names), pa.large_string())
        self._array, self.kind = array.cast(pa.large_string()), kind

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[str]:
        return iter(self._array.to_pylist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._array[index].to_pylist()
        return self._array[int(index)].as_py()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and bool(self._array.equals(other._array))

    def __hash__(self) -> int:
        return hash((len(self), self.kind))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} {self.kind} names)"

    @property
    def array(self) -> Any:
        """The names as an Arrow array."""
        return self._array

    def names(self, ids: np.ndarray) -> list[str]:
        """The names of many ids."""
        wanted = np.ascontiguousarray(ids, np.int64)  # not pa.array, which imports pandas to look at it
        places = pa.Array.from_buffers(pa.int64(), len(wanted), [None, pa.py_buffer(wanted)])
        return self._array.take(places).to_pylist()  # type: ignore[no-any-return]

    def id(self, name: str) -> int:
        """The id of one name, or an error that says the nearest ones."""
        found = int(pc.index(self._array, pa.scalar(name, pa.large_string())).as_py())
        if found < 0:
            raise UnknownNameError(self.kind, name, self.near(name))
        return found

    def ids(self, names: Iterable[str]) -> np.ndarray:
        """The ids of many names, or an error that says the nearest ones to one that is not there."""
        asked = list(names)
        found = self.places(asked)
        if len(found) and found.min() < 0:
            self.id(asked[int(np.argmin(found))])
        return found

    def places(self, names: Iterable[str]) -> np.ndarray:
        """The ids of many names, −1 for those that are not there."""
        found = pc.index_in(pa.array(list(names), pa.large_string()), self._array)
        return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.places([name])[0] >= 0)

    def near(self, name: str, limit: int = 3) -> list[str]:
        """Names that look like one that is not there."""
        words = [word for word in name.replace("_", "/").replace("#", "/").split("/") if word]
        inside = self._array
        if len(inside) > 20_000 and words:
            inside = inside.filter(pc.match_substring(inside, max(words, key=len), ignore_case=True))
        return difflib.get_close_matches(name, inside[:20_000].to_pylist(), n=limit, cutoff=0.4)


def write_names(path: Path, entities: Any, relations: Any) -> None:
    """The names of a run's rows, given as Arrow arrays, into one Parquet file."""
    kinds = ["entity"] * len(entities) + ["relation"] * len(relations)
    table = pa.table(
        {
            "kind": pa.array(kinds, pa.string()).dictionary_encode(),
            "name": pa.concat_arrays([entities, relations]),
        }
    )
    write_table(path, table, compression="zstd")
