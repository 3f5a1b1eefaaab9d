"""veil load SOURCE --out GRAPH"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

KINDS = ("movielens", "interactions")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    modes = ("random", "entities", "inductive", "latest")  # of load/split.py, which --help does not wait for
    parser.add_argument(
        "source",
        nargs="*",
        help="a file (TSV, CSV, Parquet, RDF; also .gz), a folder, an http(s) SPARQL endpoint, builtin:hospital, movielens "
        "FOLDER, or interactions FILE (users and items)",
    )
    parser.add_argument(
        "--database", metavar="URL", help="sqlite:///FILE, duckdb:///FILE, postgresql://…, with --mapping"
    )
    parser.add_argument(
        "--tables", metavar="FOLDER", help="a folder of CSV files, one per table, read like a database"
    )
    parser.add_argument(
        "--mapping", help="R2RML: a file, or the name of one that comes with veilgraph (veil list mappings)"
    )
    parser.add_argument(
        "--no-marks", action="store_true", help="do not apply the rules that come with the mapping"
    )
    parser.add_argument("--out", help="where to save the graph; without it, only report")
    parser.add_argument("--force", action="store_true", help="replace a graph that is there")
    parser.add_argument(
        "--columns", help="which columns hold head, relation, tail: names or positions, e.g. 0,2,1"
    )
    parser.add_argument(
        "--header", action=argparse.BooleanOptionalAction, default=None, help="the first line holds names"
    )
    parser.add_argument("--separator", help="between fields; by the file's ending, if not given")
    parser.add_argument("--literals", choices=("drop", "entity"), default="drop", help="RDF literals")
    parser.add_argument(
        "--descriptions", metavar="FILE", help="«entity, text» lines (TSV) that describe entities"
    )
    parser.add_argument("--language", help="of RDF descriptions, where there are several, e.g. en")
    parser.add_argument("--query", help="SPARQL CONSTRUCT query (default: everything)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for an endpoint")
    parser.add_argument("--patients", type=int, default=2000, help="size of builtin:hospital (default 2000)")
    parser.add_argument("--split", choices=modes, help="cut into train, valid, test")
    parser.add_argument(
        "--valid", type=float, help="share held out for validation, with --split (default 0.1)"
    )
    parser.add_argument("--test", type=float, help="share held out for testing, with --split (default 0.1)")
    parser.add_argument("--fix", action="store_true", help="drop what the integrity check finds")
    parser.add_argument("--seed", type=int, default=0, help="of the split and the generator")


def _named(words: list[str]) -> str | None:
    """The source: one word, or a kind of source and where it is."""
    from veilgraph.errors import UsageError

    if len(words) == 2 and words[0] in KINDS:
        return ":".join(words)
    if len(words) > 1:
        raise UsageError(
            f"veil load reads one source, found {' '.join(words)}. Two words are for: {', '.join(KINDS)}."
        )
    return words[0] if words else None


@contextmanager
def _silent(log: logging.Logger) -> Iterator[None]:
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Read, check, mend if asked, split, save."""
    from veilgraph.errors import ConfigError, UsageError
    from veilgraph.load import fix, load, save, split
    from veilgraph.load.readers.database import hide_password
    from veilgraph.load.source import rules_of
    from veilgraph.load.store import check_target
    from veilgraph.mark import absent_relations, beside

    if options.out:
        check_target(options.out, force=options.force)
    given = [
        source
        for source in (
            _named(options.source),
            options.database,
            options.tables and f"tables:{options.tables}",
        )
        if source
    ]
    if len(given) != 1:
        raise UsageError("veil load reads one source: give a SOURCE, a --database or a folder of --tables.")
    if not options.split and (options.valid is not None or options.test is not None):
        raise UsageError("--valid and --test are shares of a split: say which with --split random.")
    if options.mapping and "://" not in given[0] and not given[0].startswith("tables:"):
        raise UsageError("--mapping says what tables become: give a --database or a folder of --tables.")
    columns = None
    if options.columns:
        columns = tuple(part.strip() for part in options.columns.split(","))
        if len(columns) != 3:
            raise UsageError(
                f"--columns needs three columns (head, relation, tail), found {options.columns!r}."
            )
    separator = options.separator.replace("\\t", "\t") if options.separator else None
    if separator is not None and len(separator) != 1:
        raise ConfigError(f"--separator must be one character, found {options.separator!r}.")
    began = time.perf_counter()
    findings: list[Any] = []
    with _silent(logging.getLogger("veilgraph.load")):  # findings are shown below, in their own form
        graph = load(
            given[0],
            columns=columns,
            header=options.header,
            separator=separator,
            literals=options.literals,
            descriptions=options.descriptions,
            language=options.language,
            query=options.query,
            timeout=options.timeout,
            mapping=options.mapping,
            marks=not options.no_marks,
            tell=findings.append,
            patients=options.patients,
            seed=options.seed,
        )
    seconds = time.perf_counter() - began
    rules = None if options.no_marks else rules_of(graph, options.mapping)
    if options.fix:
        graph = fix(graph)
    if options.split:
        shares = {
            name: 0.1 if (share := getattr(options, name)) is None else share for name in ("valid", "test")
        }
        graph = split(graph, **shares, mode=options.split, seed=options.seed)
    if options.out:
        save(graph, options.out, force=options.force)
    return {
        "source": hide_password(given[0]),
        "graph": options.out,
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "splits": {name: len(array) for name, array in graph.splits.items()},
        "findings": [vars(finding) for finding in findings],
        "fixed": options.fix,
        "mapping": graph.extra.get("mapping"),
        "left_out": graph.extra.get("left_out", []),
        "marks": str(rules.name) if rules else None,
        "absent": absent_relations(graph, rules) if rules else [],
        "beside": beside(graph) if rules else {},
        "described": _described(graph),
        "held_out": int(graph.held_out.sum()),
        "confidential": sum(int(graph.secret(name).sum()) for name in graph.splits),
        "seconds": round(seconds, 3),
        "triples_per_second": round(len(graph) / seconds),
    }


def _described(graph: Any) -> int:
    """How many entities have a text."""
    return 0 if graph.descriptions is None else len(graph.descriptions) - graph.descriptions.null_count


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.mark import say_about_marks
    from veilgraph.cli.terminal import facts, note

    splits = ", ".join(f"{name} {count:,}" for name, count in result["splits"].items())
    facts(
        {
            "entities": result["entities"],
            "relations": result["relations"],
            "statements": splits,
            **({"described by text": result["described"]} if result["described"] else {}),
            **({"entities held out": result["held_out"]} if result["held_out"] else {}),
            "read in": f"{result['seconds']:.2f} s",
            "saved to": result["graph"] or "nowhere (add --out GRAPH)",
        },
        result["source"],
    )
    if result["left_out"]:
        note(f"{result['mapping']}: left out, because it is not there: {', '.join(result['left_out'])}")
    if result["marks"]:
        note(
            f"{result['confidential']:,} statements are confidential by {result['marks']} (--no-marks leaves it out; "
            "veil mark changes it)."
        )
    say_about_marks(result)
    done = "dropped" if result["fixed"] else "found"
    for finding in result["findings"]:
        note(
            f"{done}: {finding['split']}: {finding['count']:,} × {finding['kind']}, e.g. {finding['example']}"
        )
    if result["findings"] and not result["fixed"]:
        note("Nothing was changed. Add --fix to drop these.")
