"""veil mark GRAPH --relation hasDiagnosis --unit head"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("graph", help="a saved graph folder (veil load … --out GRAPH)")
    which = parser.add_argument_group("what is confidential", "several rules mark what any of them names")
    which.add_argument(
        "--relation", action="append", default=[], help="a relation's name, or a glob; may be repeated"
    )
    which.add_argument(
        "--type", action="append", default=[], help="every statement about an entity of this type"
    )
    which.add_argument(
        "--statements", metavar="FILE", help="a file that names the statements (anything veil load reads)"
    )
    which.add_argument(
        "--query", help="a SPARQL query that returns the statements; @FILE reads it from a file"
    )
    which.add_argument("--random-share", type=float, metavar="SHARE", help="a random share, for experiments")
    which.add_argument("--everything", action="store_true", help="every statement")
    which.add_argument("--seed", type=int, default=0, help="of the random share")
    parser.add_argument(
        "--unit",
        default="statement",
        help="whose privacy: statement, head (e.g. a patient), or group:RELATION",
    )
    parser.add_argument(
        "--per-unit",
        type=int,
        metavar="M",
        help="most statements of one unit a private step reads (default 10)",
    )
    parser.add_argument("--out", help="save here instead of into GRAPH itself")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Mark and save."""
    from pathlib import Path

    from veilgraph.errors import InputError, UsageError
    from veilgraph.load import load, save
    from veilgraph.load.store import is_graph_folder
    from veilgraph.mark import mark, summarise

    if not options.out and not is_graph_folder(options.graph):
        raise UsageError(
            f"{options.graph} is no saved graph: marks are stored with the graph. Say where with --out."
        )
    query = options.query
    if query and query.startswith("@"):
        try:
            query = Path(query[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{query[1:]} cannot be read: {error}") from None
    graph = load(options.graph)
    marks = mark(
        graph,
        relations=options.relation,
        types=options.type,
        statements=options.statements,
        query=query,
        random_share=options.random_share,
        everything=options.everything,
        seed=options.seed,
        unit=options.unit,
        per_unit=options.per_unit,
    )
    graph, target = graph.with_marks(marks), options.out or options.graph
    save(graph, target, force=not options.out)
    return {"graph": target, **summarise(graph), "rules": [dict(rule) for rule in marks.rules]}


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, note, table

    sees = result["outsider_sees"]
    facts(
        {
            "confidential": result["confidential"],
            "unrestricted": result["unrestricted"],
            "unit": f"{result['unit']} ({result['units']:,} in train, at most {result['per_unit']} statements each)",
        },
        f"{result['graph']}: marks.yaml",
    )
    rows = [(name, c["confidential"], c["unrestricted"]) for name, c in result["relations"].items()]
    table(("relation", "confidential", "unrestricted"), rows)
    if result["cut_by_cap"]:
        note(
            f"{result['cut_by_cap']:,} statements are beyond the cap of {result['per_unit']} a unit and will not be "
            f"learnt from (largest unit: {result['largest_unit']:,}). A larger --per-unit keeps them, at more noise."
        )
    note(
        f"An outsider still sees {sees['entity_names']:,} entity names, {sees['relation_names']:,} relation names and "
        f"{sees['statements']:,} unrestricted statements. Of the {sees['entities_with_secrets']:,} entities in "
        f"confidential statements, {sees['of_them_in_unrestricted_statements']:,} also occur in unrestricted ones and "
        f"{sees['of_them_known_by_name_only']:,} are known by name only."
    )
