"""Texts about entities: «entity, text» lines, plain or gzipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from veilgraph.errors import ReadError
from veilgraph.limits import content
from veilgraph.load.frames import broken, first_line, pl
from veilgraph.load.graph import Graph
from veilgraph.load.readers.base import regular_file


def read_descriptions(source: str | Path, *, once: bool = False) -> dict[str, str]:
    """Entity → text of a two-column file; lines without a text say nothing. Of several texts the last counts, or (``once``) none may be."""
    path = regular_file(str(source))
    try:
        frame = pl.read_csv(
            content(path),
            separator="\t",
            has_header=False,
            quote_char=None,
            infer_schema=False,
            truncate_ragged_lines=True,
            glob=False,
        )
    except broken() as error:
        raise ReadError(path, f"cannot be read as «entity, text» lines: {first_line(error)}") from None
    if frame.width < 2:
        raise ReadError(
            path, f"expected «entity, text» lines with a tab between them, found one column: {frame[0, 0]!r}"
        )
    lines = frame.drop_nulls().select(frame.columns[:2]).unique(maintain_order=True)
    twice = lines.filter(lines[lines.columns[0]].is_duplicated())
    if once and len(twice):
        raise ReadError(
            path, f"{twice[0, 0]!r} is described twice, differently: which is meant? Leave one of the lines."
        )
    return dict(lines.iter_rows())


def describe(graph: Graph, texts: Mapping[str, str]) -> Graph:
    """The same graph, its entities described by these texts where they speak of them."""
    before = [None] * len(graph.entities) if graph.descriptions is None else graph.descriptions.to_pylist()
    found = [texts.get(name, old) for name, old in zip(graph.entities, before)]
    return replace(graph, descriptions=pa.array(found, pa.large_string()), source="")
