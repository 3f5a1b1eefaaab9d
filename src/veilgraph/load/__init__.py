"""From a source to a Graph: ``load("hospital.ttl")``, ``load("builtin:hospital")``, ``load("fb15k-237/")``.

Every load is checked (``check``); nothing is mended unless asked.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilgraph.errors import ConfigError, InputError
from veilgraph.load.assemble import assemble
from veilgraph.load.builtin import BuiltinReader
from veilgraph.load.check import Finding, check, fix
from veilgraph.load.database import DatabaseReader
from veilgraph.load.datasets import benchmark
from veilgraph.load.delimited import DelimitedReader
from veilgraph.load.descriptions import describe, read_descriptions
from veilgraph.load.folder import FolderReader, GrailReader
from veilgraph.load.graph import Graph
from veilgraph.load.interactions import InteractionsReader
from veilgraph.load.movielens import MovielensReader
from veilgraph.load.parquet import ParquetReader
from veilgraph.load.rdf import RdfReader
from veilgraph.load.reader import Names, Reader, ReadOptions, regular_file
from veilgraph.load.sparql import SparqlReader
from veilgraph.load.split import split
from veilgraph.load.store import is_graph_folder, open_graph, save
from veilgraph.load.tables import TablesReader
from veilgraph.load.vocabulary import Vocabulary

__all__ = [
    "READERS",
    "Finding",
    "Graph",
    "ReadOptions",
    "Vocabulary",
    "check",
    "fix",
    "load",
    "save",
    "split",
]

LOG = logging.getLogger("veilgraph.load")  # what the integrity check finds; the command line shows it itself

READERS: tuple[Reader, ...] = (
    BuiltinReader(),
    SparqlReader(),
    DatabaseReader(),
    TablesReader(),
    MovielensReader(),
    InteractionsReader(),
    FolderReader(),
    GrailReader(),
    DelimitedReader(),
    ParquetReader(),
    RdfReader(),
)


def load(source: str | Path | Graph, **options: Any) -> Graph:
    """The graph behind a file, a folder, an endpoint or a built-in name.

    Options are the fields of ``ReadOptions``: columns, header, separator, literals, descriptions, language, query, timeout,
    mapping, patients, seed.
    """
    if isinstance(source, Graph):
        return source
    text = str(source)
    try:
        chosen = ReadOptions(**options)
    except TypeError:
        unknown = sorted(set(options) - set(ReadOptions.__dataclass_fields__))
        known = ", ".join(ReadOptions.__dataclass_fields__)
        raise ConfigError(f"load has no option {unknown[0]!r}; there are {known}") from None
    if chosen.literals not in ("drop", "entity"):
        raise ConfigError(f"literals must be drop or entity, found {chosen.literals!r}")
    if chosen.separator is not None and len(chosen.separator.encode()) != 1:
        raise ConfigError(f"separator must be one plain character, found {chosen.separator!r}")
    if is_graph_folder(text):
        graph = open_graph(text)
        return graph if chosen.descriptions is None else _described(graph, chosen.descriptions)
    for reader in READERS:
        if reader.reads(text):
            graph = assemble(reader.read(text, chosen, Names()), text)
            if chosen.descriptions is not None:
                graph = _described(graph, chosen.descriptions)
            for finding in check(graph):
                LOG.warning("%s: %s", text, finding)
            return graph if chosen == ReadOptions() else replace(graph, source="")
    if not Path(text).exists() and (named := benchmark(text)) is not None:
        return load(named, **options)
    if text.startswith("builtin:") or not Path(text).suffix or Path(text).is_dir() or not Path(text).exists():
        regular_file(text)
    endings = sorted({e for r in READERS for e in r.endings})
    raise InputError(
        f"{text}: no reader for this kind of file. Readable endings: {' '.join(endings)} (also .gz)."
    )


def _described(graph: Graph, source: str) -> Graph:
    """The graph with the texts of a file; one that speaks of nobody is taken for a mistake."""
    texts = read_descriptions(source)
    if texts and not (graph.entities.places(texts) >= 0).any():
        raise InputError(
            f"{source}: none of its {len(texts):,} names (e.g. {next(iter(texts))!r}) is an entity of the graph "
            f"(e.g. {graph.entities[0]!r})."
        )
    return describe(graph, texts)
