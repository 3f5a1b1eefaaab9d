"""What a source is, in one place: which reader it has, where it points seen from elsewhere, and the graph behind it.

memory       ""                       a graph that was made in memory: nobody finds it again
address      postgresql://…, https://…
scheme       builtin:hospital         and tables:FOLDER, movielens:FOLDER, interactions:FILE, whose rest is a path
path         a file, a folder, a saved graph, or the name of a benchmark
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from veilgraph import registry
from veilgraph.errors import ConfigError, InputError
from veilgraph.folders import recover
from veilgraph.load.assemble import assemble
from veilgraph.load.check import check
from veilgraph.load.datasets import benchmark
from veilgraph.load.descriptions import describe, read_descriptions
from veilgraph.load.graph import Graph
from veilgraph.load.mapping import marks_beside
from veilgraph.load.readers.base import Names, Reader, ReadOptions, regular_file
from veilgraph.load.store import is_graph_folder, open_graph

LOG = logging.getLogger("veilgraph.load")  # what the integrity check finds, where nobody is told


@cache
def readers() -> tuple[Reader, ...]:
    """One of each, in the order they are asked."""
    return tuple(
        sorted(
            (one() for one in registry.available("readers").values()), key=lambda one: (one.turn, one.name)
        )
    )


def load(source: str | Path | Graph, **options: Any) -> Graph:
    """The graph behind a file, a folder, an endpoint or a built-in name, checked; nothing is mended unless asked.

    Options are the fields of ``ReadOptions``: columns, header, separator, literals, descriptions, language, query, timeout,
    mapping, marks, tell, patients, seed. What comes with a mapping that has rules beside it is marked by them, unless ``marks`` is False.
    """
    if isinstance(source, Graph):
        return source
    text, chosen = str(source), _options(options)
    if "://" not in text:
        recover(Path(text))
    if is_graph_folder(text):  # (was checked when it was saved)
        graph = open_graph(text)
        if chosen.tell is not None:
            _tell(graph, text, chosen)
        return graph if chosen.descriptions is None else _described(graph, chosen.descriptions)
    reader = next((one for one in readers() if one.reads(text)), None)
    if reader is None:
        return _by_name(text, options)
    graph = assemble(reader.read(text, chosen, Names()), text)
    if chosen.descriptions is not None:
        graph = _described(graph, chosen.descriptions)
    _tell(graph, text, chosen)
    marked = _marked(graph, chosen)
    again = chosen == ReadOptions() or (marked is graph and replace(chosen, marks=True) == ReadOptions())
    return marked if again else replace(marked, source="")  # (the source alone would give another graph)


def _tell(graph: Graph, text: str, options: ReadOptions) -> None:
    for finding in check(graph):
        if options.tell is None:
            LOG.warning("%s: %s", text, finding)
        else:
            options.tell(finding)


def _options(options: dict[str, Any]) -> ReadOptions:
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
    return chosen


def _by_name(text: str, options: dict[str, Any]) -> Graph:
    """A benchmark, by its name alone; or an error that says what could have been read."""
    if not Path(text).exists() and (named := benchmark(text)) is not None:
        return load(named, **options)
    if text.startswith("builtin:") or not Path(text).suffix or Path(text).is_dir() or not Path(text).exists():
        regular_file(text)
    endings = sorted({ending for one in readers() for ending in one.endings})
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


def _marked(graph: Graph, options: ReadOptions) -> Graph:
    """The graph with the marks that its mapping brings along."""
    rules = rules_of(graph, options.mapping) if options.marks else None
    if rules is None:
        return graph
    marks = registry.find("markers", "rules")().marks(graph, rules)
    if marks is None:
        return graph
    if options.tell is None:  # (the command line says it in its own form)
        named, all_ = sum(int(mask.sum()) for mask in marks.masks.values()), len(graph)
        LOG.warning(
            "%s of %s statements are confidential, by %s; the others are read as they are. Other marks: veil load and veil mark, or "
            "load(…, marks=False).",
            f"{named:,}",
            f"{all_:,}",
            rules.name,
        )
    return graph.with_marks(marks)


def rules_of(graph: Graph, mapping: str | None = None) -> Path | None:
    """The rules that lie beside the mapping a graph was made with, if there are any."""
    return marks_beside(mapping or graph.extra["mapping"]) if "mapping" in graph.extra else None


# --- where a source is ----------------------------------------------------------------------------------------------
def _parts(source: str) -> tuple[str, str | None]:
    """Scheme and path of a source; no path where it is no file of this machine."""
    if not source or "://" in source:
        return source, None
    for one in readers():
        if one.scheme and source.startswith(one.scheme):
            return (one.scheme, source.removeprefix(one.scheme)) if one.of_files else (source, None)
    return "", source


def seen_from(source: str, folder: Path) -> str:
    """The source as seen from a folder, so that both can be moved together; what is no path stays as it is."""
    scheme, path = _parts(source)
    return scheme if path is None else scheme + os.path.relpath(Path(path).resolve(), folder.resolve())


def as_seen_from(source: str, folder: Path) -> str:
    """What ``seen_from`` made, undone; and what runs of 0.1 stored, which took a scheme for part of a path: «../x/movielens:ml»."""
    scheme, path = _parts(source)
    if path is None:
        return scheme
    for one in readers() if not scheme else ():
        place, found, rest = path.partition(f"/{one.scheme}") if one.scheme and one.of_files else ("", "", "")
        if found:
            scheme, path = one.scheme, os.path.join(place, rest)
    return scheme + os.path.normpath(folder.resolve() / path)


def is_address(source: str) -> bool:
    """Whether reading a source calls somebody: which only whoever names it may ask for, never what a folder says."""
    return "://" in source


def may_be_there(source: str) -> bool:
    """Whether a source may still be read: a path that is gone cannot; of an address nobody knows before asking."""
    path = _parts(source)[1]
    return bool(source) and (path is None or Path(path).exists())
