"""Rules that make statements confidential. Several rules mark what any of them names.

A rule looks at the curator's whole graph and is not itself released; only its wording (never a statement it names) is
stored with the graph.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.errors import ConfigError, InputError, UnknownNameError, UsageError
from veilgraph.files import read_yaml
from veilgraph.load import Graph, load
from veilgraph.load.marks import Marker, Marks
from veilgraph.mark.query import statements_of
from veilgraph.mark.statements import keys_of
from veilgraph.mark.units import unit_of
from veilgraph.rng import check_seed, uniform

LARGEST_UNIT = 1_000_000  # noise grows with it: more would leave nothing of a graph
TOP = (
    "unit",
    "per_unit",
    "rules",
    "absent",
    "decided_from",
    "confidential",
)  # of a rules file; the last is what marks.yaml counts
KINDS = {
    "relation": ("relation",),
    "type": ("type", "by"),
    "statements": ("statements",),
    "query": ("query",),
    "random_share": ("random_share", "seed"),
    "everything": ("everything",),
}
TYPE_RELATIONS = ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "rdf:type", "type", "instanceOf", "isA")


def mark(
    graph: Graph | str | Path,
    *,
    relations: Sequence[str] = (),
    types: Sequence[str] = (),
    statements: str | Path | np.ndarray | None = None,
    query: str | None = None,
    random_share: float | None = None,
    seed: int = 0,
    everything: bool = False,
    unit: str = "statement",
    per_unit: int | None = None,
    decided_from: Sequence[str] = (),
) -> Marks:
    """Marks that make these statements confidential, in every split.

    ``relations`` are names or globs; ``types`` mark every statement about an entity of that type; ``statements`` is a
    file (or array of ids) naming them one by one; ``query`` is SPARQL; ``random_share`` is for experiments.

    Reads confidential data: by types told by statements, and by queries, which say so in the marks (``decided_from``, with what the
    caller adds to it): a promise takes to be public which statements they named. Releases: nothing.
    """
    graph, decided = load(graph), [str(line) for line in decided_from]
    found: list[tuple[dict[str, Any], np.ndarray]] = []
    statements_all = graph.triples
    for name in relations:
        found.append(({"relation": name}, np.isin(statements_all[:, 1], matching(graph, [name]))))
    for name in types:
        how, mask = _by_type(graph, statements_all, name)
        found.append(({"type": name, "by": how}, mask))
        if how.startswith("relation"):
            decided.append(
                f"which statements are confidential: the rule «type: {name}» reads statements of {how}"
            )
    if statements is not None:
        where = "given in memory" if isinstance(statements, np.ndarray) else str(statements)
        found.append(({"statements": where}, _by_keys(graph, statements_all, keys_of(graph, statements))))
    if query is not None:
        found.append(({"query": query}, _by_keys(graph, statements_all, statements_of(graph, query))))
        decided.append("which statements are confidential: the rule «query» reads any statement")
    if random_share is not None:
        if not isinstance(random_share, float | int) or not 0 <= random_share <= 1:
            raise ConfigError(f"random_share must be a number between 0 and 1, found {random_share!r}")
        check_seed(seed)
        rule = {"random_share": float(random_share), "seed": int(seed)}
        found.append((rule, uniform(graph.keys(statements_all), seed) < random_share))
    if everything:
        found.append(({"everything": True}, np.ones(len(statements_all), bool)))
    if not found:
        raise UsageError(
            "nothing says what is confidential. Name relations, types, a file of statements, a SPARQL query, "
            "a random share, or everything."
        )
    chosen = unit_of(unit)
    chosen.refuse(graph)
    cap = per_unit if per_unit is not None else chosen.cap
    whole = isinstance(cap, int | np.integer) and not isinstance(cap, bool)
    if not whole or not 1 <= cap <= LARGEST_UNIT or (chosen.cap == 1 and cap != 1):
        raise ConfigError(
            f"per_unit must be a whole number between 1 and {LARGEST_UNIT:,}, and 1 for unit=statement; found {cap!r} with {unit}"
        )
    joined = np.logical_or.reduce([mask for _, mask in found])
    edges = np.cumsum([len(array) for array in graph.splits.values()])[:-1]
    masks = dict(zip(graph.splits, np.split(joined, edges)))
    kept = tuple(dict.fromkeys(decided))
    return Marks(masks, unit, cap, tuple(rule for rule, _ in found), kept)


def mark_by_rules(
    graph: Graph,
    rules: str | Path | Mapping[str, Any],
    *,
    unit: str | None = None,
    per_unit: int | None = None,
    absent: bool = False,
) -> Marks:
    """Marks from a document like a graph's marks.yaml: unit, per_unit and a list of rules; what is given here wins.

    With ``absent``, or ``absent: allowed`` in the document, rules about relations the graph does not have are passed over (those of a
    mapping, where a table was missing): ``absent_relations`` says which.
    """
    document = {**_document(rules), **({"absent": "allowed"} if absent else {})}
    passed = absent_relations(graph, document)
    for key in document:
        if key not in TOP:
            raise UnknownNameError(
                "setting of a rules file", str(key), TOP, hint=f"There are: {', '.join(TOP)}."
            )
    if not isinstance(document.get("rules") or [], list):
        raise ConfigError(
            f"rules are a list, each on a line of its own with a dash before it; found {document['rules']!r}"
        )
    given: dict[str, Any] = {"relations": [], "types": []}
    for rule in document.get("rules") or []:
        if not isinstance(rule, Mapping):
            raise ConfigError(f"a rule is a line like «relation: NAME», found {rule!r}")
        kind = next(iter(rule), None)
        more = [str(key) for key in rule if key not in KINDS.get(str(kind), (kind,))]
        if more:
            raise ConfigError(
                f"rule {dict(rule)!r} says {kind} and {', '.join(more)}: a rule is of one kind, and what any rule names is confidential. "
                "Write them as two rules, each with a dash of its own."
            )
        if kind in ("relation", "type"):
            given[f"{kind}s"].append(_one_name(rule, kind))
        elif kind in ("statements", "query", "random_share", "everything") and kind not in given:
            given |= {key: rule[key] for key in (kind, "seed") if key in rule}
        else:
            raise ConfigError(
                f"rule {dict(rule)!r} is not one of relation, type, statements, query, random_share, everything "
                "(the last four once at most)"
            )
    given["relations"] = [pattern for pattern in given["relations"] if pattern not in passed]
    if not isinstance(named := given.get("statements", ""), str) or (named and not Path(named).is_file()):
        raise ConfigError(
            f"statements names a file of this machine that is there, found {named!r}: rules fetch nothing from elsewhere. "
            "Save what it should name first."
        )
    if not isinstance(given.get("query", ""), str):
        raise ConfigError(f"query is SPARQL, in words; found {given['query']!r}")
    whose = unit if unit is not None else str(document.get("unit", "statement"))
    if per_unit is None and (unit is None or unit == document.get("unit")):
        per_unit = document.get("per_unit")  # (the cap of a file is of its own unit)
    decided = document.get("decided_from") or []
    if not isinstance(decided, list) or not all(isinstance(line, str) for line in decided):
        raise ConfigError(f"decided_from is a list of sentences, found {decided!r}")
    return mark(graph, unit=whose, per_unit=per_unit, decided_from=decided, **given)


class Rules(Marker):
    """Rules as in a graph's marks.yaml."""

    name = "rules"

    def marks(self, graph: Graph, rules: Path) -> Marks | None:
        """Nobody asked for them by name: they may be a stranger's, and name relations and types alone."""
        about = _document(rules).get("rules") or []
        for kind in ("query", "statements"):
            if any(isinstance(rule, Mapping) and kind in rule for rule in about):
                raise InputError(
                    f"{rules} holds a rule of kind «{kind}», which is not applied unasked: it reads more than the names of relations. Look "
                    f"at it, load with --no-marks (marks=False), and mark with veil mark --rules {rules}."
                )
        return None if len(absent_relations(graph, rules)) == len(about) else mark_by_rules(graph, rules)


def absent_relations(graph: Graph, rules: str | Path | Mapping[str, Any]) -> list[str]:
    """Relations a rules file speaks of and the graph does not have, where the file allows that."""
    document = _document(rules)
    allowed = document.get("absent", "refused")
    if allowed not in ("allowed", "refused"):
        raise ConfigError(f"absent must be allowed or refused, found {allowed!r}")
    if allowed == "refused":
        return []
    names, rules_ = list(graph.relations), document.get("rules") or []
    asked = [
        _one_name(rule, "relation") for rule in rules_ if isinstance(rule, Mapping) and "relation" in rule
    ]
    return [pattern for pattern in asked if pattern not in names and not fnmatch.filter(names, pattern)]


def _one_name(rule: Mapping[str, Any], kind: str) -> str:
    """What a rule is about, which is one name: a list would be a pattern that meets nothing."""
    value = rule[kind]
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f"rule {dict(rule)!r} must name one {kind}, as text{' (a name or a glob)' if kind == 'relation' else ''}; found {value!r}. "
            f"Write one rule for each {kind}, on a line of its own with a dash before it; numbers stand in quotation marks."
        )
    return value


def _document(rules: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    return rules if isinstance(rules, Mapping) else read_yaml(Path(rules))


def matching(graph: Graph, patterns: Sequence[str]) -> list[int]:
    """The ids of the relations that names or globs mean."""
    names, found = list(graph.relations), []
    for pattern in patterns:
        chosen = [i for i, name in enumerate(names) if name == pattern or fnmatch.fnmatchcase(name, pattern)]
        if not chosen:
            raise UnknownNameError("relation", pattern, names)
        found += chosen
    return found


def _by_type(graph: Graph, statements: np.ndarray, name: str) -> tuple[str, np.ndarray]:
    """Statements with an entity of this type on either side: by every type relation there is, else by the name before a slash."""
    secret = np.zeros(len(graph.entities), bool)
    told = [relation for relation in TYPE_RELATIONS if relation in graph.relations]
    if told and name in graph.entities:
        kind = np.isin(statements[:, 1], [graph.relations.id(relation) for relation in told])
        kind &= statements[:, 2] == graph.entities.id(name)
        secret[statements[kind, 0]] = True
        how = f"relation{'s' if len(told) > 1 else ''} {', '.join(told)}"
    else:
        secret[[i for i, entity in enumerate(graph.entities) if entity.startswith(f"{name}/")]] = True
        how = f"names that begin with {name}/"
    if not secret.any():
        types = {entity.split("/")[0] for entity in graph.entities if "/" in entity}
        raise UnknownNameError("entity type", name, types)
    return how, secret[statements[:, 0]] | secret[statements[:, 2]]


def _by_keys(graph: Graph, statements: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return np.isin(graph.keys(statements), keys)


def unknown_relations(graph: Graph) -> np.ndarray:
    """Relations that may be confidential and that no unrestricted training statement speaks of: public."""
    seen = np.zeros(len(graph.relations), bool)
    seen[graph.train[~graph.secret("train"), 1]] = True
    return np.flatnonzero(may_be_confidential(graph) & ~seen)


def unrestricted(graph: Graph) -> Graph:
    """The statements anyone may see, with the same (public) vocabularies."""
    if graph.marks is None:
        return graph
    kept = {split: array[~graph.secret(split)] for split, array in graph.splits.items()}
    return graph.with_marks(None).with_splits(kept)


def may_be_confidential(graph: Graph) -> np.ndarray:
    """For every relation, whether its statements may be confidential — as far as public rules tell.

    A rule by relation is public (it is part of the certificate) and says nothing about any statement. Where every rule
    is one, other relations need no noise. Any other kind of rule may touch any relation.
    """
    if graph.marks is None:
        return np.zeros(len(graph.relations), bool)
    return graph.marks.possible(list(graph.relations))
