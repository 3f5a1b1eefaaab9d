"""From the readers' named statements to a Graph of ids: names are sorted, so equal sources give equal graphs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from veilgraph.errors import ReadError
from veilgraph.limits import beyond, limit
from veilgraph.load.frames import pl
from veilgraph.load.graph import HELD_OUT, Graph
from veilgraph.load.readers.base import COLUMNS, Parts, distinct
from veilgraph.load.vocabulary import Vocabulary


def assemble(parts: Parts, source: str) -> Graph:
    """A Graph of all parts; the parts' frames are consumed."""
    frames = dict(parts.splits)
    for frame in frames.values():
        holes = [column for column in COLUMNS if frame[column].null_count()]
        if holes:
            raise ReadError(
                source,
                f"{frame[holes[0]].null_count():,} of its statements have no {holes[0]}: a field is empty or missing.",
            )
    entities, entity_rank = _vocabulary((f[c] for f in frames.values() for c in ("head", "tail")), "entity")
    relations, relation_rank = _vocabulary((f["relation"] for f in frames.values()), "relation")
    splits = {}
    for split in list(frames):
        frame = frames.pop(split)
        array = np.empty((len(frame), 3), np.int32)
        for i, (column, rank) in enumerate(
            (("head", entity_rank), ("relation", relation_rank), ("tail", entity_rank))
        ):
            array[:, i] = rank[frame[column].to_physical().to_numpy()]
        splits[split] = array
    texts = None
    if parts.descriptions:
        texts = pa.array([parts.descriptions.get(name) for name in entities], pa.large_string())
    extra = dict(parts.extra)
    if parts.apart:
        extra[HELD_OUT] = np.unique(
            np.concatenate([splits[name][:, [0, 2]].ravel() for name in parts.apart])
        ).tolist()
    graph = Graph(entities, relations, splits, texts, source, extra)
    for what in parts.decided:
        graph = graph.decided(what)
    return graph


def _vocabulary(columns: Iterable[pl.Series], kind: str) -> tuple[Vocabulary, np.ndarray]:
    """The sorted distinct names, and for each physical code of the columns its place among them."""
    names_seen = pl.concat([distinct(column) for column in columns]).unique()
    table = pl.DataFrame({"name": names_seen.cast(pl.String), "code": names_seen.to_physical()}).sort("name")
    rank = np.zeros(int(table["code"].max() or 0) + 1, np.int32)  # type: ignore[call-overload, arg-type]
    rank[table["code"].to_numpy()] = np.arange(len(table), dtype=np.int32)
    longest = int(table["name"].str.len_bytes().max() or 0)  # type: ignore[arg-type]
    if longest > limit("text"):
        raise beyond("this source", f"has an {kind} whose name is no name", "text", f"{longest:,} bytes")
    names = table["name"].to_arrow()
    return Vocabulary(names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names, kind), rank
