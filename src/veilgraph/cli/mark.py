"""veil mark GRAPH --relation hasDiagnosis --unit head · veil mark suggest GRAPH"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="[suggest] GRAPH",
        help="a saved graph folder (veil load … --out GRAPH); suggest before it shows what unrestricted statements give away",
    )
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
    which.add_argument(
        "--rules", metavar="FILE", help="a file like marks.yaml, e.g. one that veil mark suggest wrote"
    )
    which.add_argument("--random-share", type=float, metavar="SHARE", help="a random share, for experiments")
    which.add_argument("--everything", action="store_true", help="every statement")
    which.add_argument("--seed", type=int, default=0, help="of the random share")
    parser.add_argument(
        "--unit",
        help="whose privacy: statement (default), head (e.g. a patient), or group:RELATION; wins over a rules file",
    )
    parser.add_argument(
        "--per-unit",
        type=int,
        metavar="M",
        help="most statements of one unit a private step reads (default 10); wins over a rules file",
    )
    parser.add_argument("--out", help="save here instead of into GRAPH itself (suggest: the proposed rules)")
    parser.add_argument(
        "--force", action="store_true", help="suggest: replace the file of --out, if it is there"
    )
    ways = parser.add_argument_group("suggest", "which guesses count")
    ways.add_argument(
        "--confidence", type=float, default=0.5, help="share of others with the secret (default 0.5)"
    )
    ways.add_argument("--lift", type=float, default=2.0, help="times likelier than for anybody (default 2)")
    ways.add_argument("--support", type=int, default=5, help="others that share the value (default 5)")
    ways.add_argument("--steps", type=int, default=2, choices=(1, 2), help="longest path (default 2)")
    ways.add_argument(
        "--luck", type=float, default=0.05, help="leave out what may be chance (default 0.05; 1 shows all)"
    )
    ways.add_argument("--top", type=int, default=15, help="ways shown (default 15; --json has all)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Mark and save, or look for what gives secrets away."""
    from pathlib import Path

    from veilgraph.errors import InputError, UsageError
    from veilgraph.load import load, save
    from veilgraph.load.store import is_graph_folder, seen
    from veilgraph.mark import absent_relations, beside, mark, mark_by_rules, summarise

    *before, options.graph = options.words
    if before not in ([], ["suggest"]):
        raise UsageError(f"expected «veil mark GRAPH» or «veil mark suggest GRAPH», found {options.words}.")
    if before:
        return _suggest(options)
    if options.force:
        raise UsageError(
            "--force replaces the file of «veil mark suggest … --out», and would do nothing here."
        )
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
    before = seen(options.graph)
    graph = load(options.graph)
    named = (
        options.relation,
        options.type,
        options.statements,
        query,
        options.random_share,
        options.everything,
    )
    if options.rules and any(rule not in (None, False, []) for rule in named):
        raise UsageError(
            "--rules says all there is to say: leave the other rules out, or write them into the file."
        )
    marks = (
        mark_by_rules(graph, options.rules, unit=options.unit, per_unit=options.per_unit)
        if options.rules
        else mark(
            graph,
            relations=options.relation,
            types=options.type,
            statements=options.statements,
            query=query,
            random_share=options.random_share,
            everything=options.everything,
            seed=options.seed,
            unit=options.unit or "statement",
            per_unit=options.per_unit,
        )
    )
    graph, target = graph.with_marks(marks), options.out or options.graph
    save(graph, target, force=not options.out, instead_of=None if options.out else before)
    return {
        "graph": target,
        **summarise(graph),
        "rules": [dict(rule) for rule in marks.rules],
        "absent": absent_relations(graph, options.rules) if options.rules else [],
        "beside": beside(graph),
    }


def _suggest(options: argparse.Namespace) -> dict[str, Any]:
    from pathlib import Path

    import yaml

    from veilgraph.errors import InputError
    from veilgraph.files import check_new, write_text
    from veilgraph.load import load
    from veilgraph.load.store import is_graph_folder
    from veilgraph.mark import proposal, suggest

    if options.out and is_graph_folder(Path(options.out).resolve().parent):
        raise InputError(
            f"{options.out} is inside a graph folder, which holds its own marks: write the proposal beside it, read it, then apply it with "
            f"veil mark {options.graph} --rules FILE."
        )
    check_new(options.out, force=options.force)
    if not 0 <= options.luck <= 1:
        raise InputError(f"--luck is a chance between 0 and 1, found {options.luck}.")
    graph = load(options.graph)
    chosen = {key: getattr(options, key) for key in ("confidence", "lift", "support", "steps")}
    everything = suggest(graph, options.relation, **chosen, luck=1.0)
    found = [way for way in everything if way.luck <= options.luck]
    rules = proposal(graph, found)
    if options.out:
        write_text(Path(options.out), yaml.safe_dump(rules, sort_keys=False, allow_unicode=True))
    ways = [way.as_dict() for way in found]
    return {
        "graph": options.graph,
        "suggestions": ways,
        "may_be_luck": len(everything) - len(found),
        "proposal": rules,
        "out": options.out,
        "top": options.top,
    }


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.cli.terminal import facts, note, table

    if "suggestions" in result:
        _show_suggestions(result)
        return
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
    if result["about_others"]:
        note(
            f"{result['about_others']:,} confidential statements have the head of another unit as their tail: they are about it, but a "
            "statement belongs to its head alone, so a promise about a unit does not hold for what these say about it. Where they are "
            "about a person, turn them round before loading, so that the person is their head."
        )
    say_about_marks(result)
    note(
        f"An outsider still sees {sees['entity_names']:,} entity names, {sees['relation_names']:,} relation names and "
        f"{sees['statements']:,} unrestricted statements. Of the {sees['entities_with_secrets']:,} entities in "
        f"confidential statements, {sees['of_them_in_unrestricted_statements']:,} also occur in unrestricted ones and "
        f"{sees['of_them_known_by_name_only']:,} are known by name only."
    )


def say_about_marks(result: dict[str, Any]) -> None:
    """Rules that met nothing, and what is left unmarked beside what is marked."""
    from veilgraph.cli.terminal import note

    if result["absent"]:
        note(f"Rules about relations this graph does not have, passed over: {', '.join(result['absent'])}.")
    if result["beside"]:
        named = ", ".join(f"{name} ({count:,})" for name, count in result["beside"].items())
        note(
            f"Unrestricted, and about the same entities as confidential statements: {named}. Whoever has the vectors may read these as "
            f"they are: mark them too, or see what they give away: veil mark suggest {result['graph'] or 'GRAPH'}"
        )


def _show_suggestions(result: dict[str, Any]) -> None:
    from veilgraph.cli.terminal import note, table

    ways = result["suggestions"]
    if result["may_be_luck"]:
        note(f"{result['may_be_luck']:,} ways may be mere chance and are left out (--luck 1 shows them).")
    if not ways:
        note("No unrestricted predicate, nor a path of two, guesses a secret better than chance.")
        return
    columns = ("confidential", "can be guessed from", "exposed", "by chance", "people", "right", "lift")
    table(
        columns,
        [
            (w["confidential"], " / ".join(w["path"]), w["exposed"], w["by_chance"], w["people"],
             f"{w['confidence']:.0%}", f"{w['lift']:.1f}")
            for w in ways[: result["top"]]
        ],
    )  # fmt: skip
    note(
        "exposed: people whose secret is guessed right; by chance: of them, by the commonest secret of all; people: with such a "
        "secret; right: of the guesses that were made; lift: how many times likelier than for anybody."
    )
    note(f"For example: {ways[0]['example']}.")
    if len(ways) > result["top"]:
        note(f"{len(ways) - result['top']:,} more with --json or --top.")
    where = result["out"] or "FILE (add --out FILE to write them)"
    note(f"Rules that close these ways at their first step: veil mark {result['graph']} --rules {where}")
