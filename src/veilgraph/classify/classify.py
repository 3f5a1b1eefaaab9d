"""Labels of entities learnt from the graph around them: ``classify(graph, labels, model="kegcn")``.

config      settings · folds: whose labels are learnt from · ordinary: a network over all edges, without noise
guarantees  what can be promised, one small file each · places, spread: public features (adjacency) · roles: entities as heads or tails
perceptron  the classifier behind them · private_steps: noisy clipped steps · folder: what is released, with its certificate
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph import machine, registry
from veilgraph.classify import folder as folders
from veilgraph.classify.config import ClassifyConfig, derived, refuse_unread
from veilgraph.classify.guarantees.base import Book, Task, guarantee
from veilgraph.classify.ordinary import network_scores
from veilgraph.errors import ConfigError, PrivacyError
from veilgraph.load import Graph, load
from veilgraph.load.folds import Folds, folds_of, truth_of
from veilgraph.load.labels import Labels, labels_by, read_labels
from veilgraph.mark import mark, may_be_confidential
from veilgraph.models.gcn import Edges
from veilgraph.rank.classification import measure, without_learning
from veilgraph.rank.metrics import interval


def classify(
    graph: Graph | str | Path,
    labels: Labels | str | Path | None = None,
    *,
    by: str | None = None,
    names: str | Path | Sequence[str] | None = None,
    without: str | None = None,
    seeds: int = 1,
    share: float = 0.1,
    out: str | Path | None = None,
    moved: bool = False,
    listener: Callable[[int, int, float], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """task, model, accuracy with its interval over seeds, macro_f1 (precision@5), majority and coin, seeds, epsilon, delta, guarantee.

    ``majority`` is the accuracy of saying the commonest training label of everybody, ``coin`` of any label at random.

    Learns from the labels the source says are for training, or from about a ``share`` of the labelled entities, others for each
    seed; tells the others. ``by`` is a path of relations whose end is the label (its first relation is left out of the edges, and so
    are those of ``without``); all other statements of the graph are edges. With a guarantee, ``out`` is where what is released goes;
    ``moved`` says of such a folder, stopped and moved elsewhere, that no other copy of it goes on.
    Where labels are protected, ``names`` is the public list of them, a file or words: which there are must not come from those there are.

    Reads confidential data: statements and labels; without a guarantee as they are, with one as its docstring says. Releases: with a
    guarantee and ``out``, what is in that folder; figures are for the curator.
    """
    graph = load(graph)
    asked = str(settings.get("guarantee", "none"))
    if graph.marks is None and asked in registry.names("guarantees") and guarantee(asked).protects_statements:
        graph = graph.with_marks(mark(graph, everything=True))
    known = {field.name for field in fields(ClassifyConfig)}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise ConfigError(
            f"no setting of classify is called {unknown[0]!r}. There are: {', '.join(sorted(known))}."
        )
    refuse_unread(settings)
    if seeds < 1 or not 0 < share < 1:
        raise ConfigError("classify needs at least one seed, and a share between 0 and 1.")
    if by is not None and labels is not None:
        raise ConfigError("labels come from a table or by a path: give one of them.")
    found = (
        labels if isinstance(labels, Labels) else labels_by(graph, by) if by else read_labels(graph, labels)
    )
    if settings.get("guarantee") in ("label", "node") or names is not None:
        found = found.of(_public_names(graph, by, names))
    leave = [*([by.split("/")[0]] if by else []), *(without.split(",") if without else [])]
    count = len(folds_of(found, len(graph.entities), share, 0).train)
    first = ClassifyConfig(**{**derived(count, str(settings.get("guarantee", "none"))), **settings})
    _check(first, graph, seeds, out)
    if by is not None:
        _check_path(first, graph, by.split("/"))
    machine.prepare(first.threads)
    kept = _without(graph, leave)
    results, spent = [], None
    for number in range(seeds):
        config = replace(first, seed=first.seed + number)
        task = _task(graph, kept, found, folds_of(found, len(graph.entities), share, config.seed), config)
        if config.guarantee == "none":
            edges = Edges(task.unrestricted, task.nodes, task.relations)
            scores = network_scores(edges, task, config, listener=listener)
        else:
            told = {"by": by, "without": without, "share": share}
            scores, spent = _promised(graph, found, task, config, out, told, moved=moved)
        beside = without_learning(task.truth, task.folds.train, task.folds.test)
        results.append(measure(scores[task.folds.test], task.truth[task.folds.test]) | beside)
    accuracy = [one["accuracy"] for one in results]
    return {
        "task": str(graph.source),
        "model": first.model if first.guarantee == "none" else guarantee(first.guarantee).mechanism,
        "score": first.recipe.score if first.guarantee == "none" else None,
        "accuracy": float(np.mean(accuracy)),
        "interval": interval(accuracy),
        **{key: float(np.mean([one[key] for one in results])) for key in results[0] if key != "accuracy"},
        "labels": len(found.names),
        "seeds": seeds,
        "epsilon": spent,
        "delta": first.delta if first.guarantee != "none" else None,
        "guarantee": first.guarantee,
        **({"out": str(out)} if out is not None else {}),
    }


def _promised(
    graph: Graph,
    labels: Labels,
    task: Task,
    config: ClassifyConfig,
    out: str | Path | None,
    told: dict[str, Any],
    *,
    moved: bool,
) -> tuple[np.ndarray, float | None]:
    """Scores, and ε as the ledger says."""
    kind = guarantee(config.guarantee)
    with tempfile.TemporaryDirectory() as scratch, folders.held(Path(out or scratch)):
        folder = Path(out or scratch)
        if out is not None:
            folders.begin(folder, graph, labels, config, told, moved=moved)
        book = Book.open(folder, config)
        outcome = kind.learn(task, config, book)
        if out is not None:
            folders.finish(folder, graph, labels, config, outcome)
        spent = book.ledger.spent(config.delta).epsilon
    return outcome.scores, spent if np.isfinite(spent) else None


def _check(config: ClassifyConfig, graph: Graph, seeds: int, out: str | Path | None) -> None:
    if out is not None and config.guarantee == "none":
        raise ConfigError(
            "--out is for what may be released, and without --guarantee and --epsilon nothing may."
        )
    if out is not None and seeds > 1:
        raise ConfigError("every repetition costs its own ε: write one of them (--seeds 1).")
    unit = graph.marks.unit if graph.marks is not None else "statement"
    if config.guarantee != "none" and unit not in guarantee(config.guarantee).units:
        raise PrivacyError(
            f"this graph's unit is {unit}: --guarantee {config.guarantee} would promise less than was asked for. "
            f"Units it protects: {', '.join(guarantee(config.guarantee).units)}."
        )
    if config.drop_confidential and graph.marks is None:
        raise ConfigError("nothing is marked confidential in this graph: veil mark says what is.")


def _check_path(config: ClassifyConfig, graph: Graph, names: list[str]) -> None:
    """Refuse labels that are themselves what is to be protected; the first step of a path says something about its entity alone."""
    if config.guarantee == "none":
        return
    possible = _possible(graph)
    read = names if config.guarantee == "edge" else names[1:]
    secret = [name for name in read if name and possible[graph.relations.id(name)]]
    if secret:
        raise PrivacyError(
            f"labels would be read from statements of {', '.join(secret)}, which may be confidential, and --guarantee {config.guarantee} "
            "takes labels as public there. Take labels from a public table, or protect them: --guarantee label or node."
        )


def _possible(graph: Graph) -> np.ndarray:
    """For every relation, whether its statements may be confidential: by rules, or because one is."""
    secret = np.concatenate([a[graph.secret(split), 1] for split, a in graph.splits.items()])
    found = may_be_confidential(graph)
    found[secret] = True
    return found


def _public_names(graph: Graph, by: str | None, names: str | Path | Sequence[str] | None) -> list[str]:
    """The labels there may be, as somebody said or as public statements at the end of a path say."""
    steps = by.split("/") if by is not None else []
    if (
        names is None and len(steps) > 1 and steps[-1] != steps[0]
    ):  # (the first step says whose label is what)
        last = graph.relations.id(steps[-1])
        if not _possible(graph)[last]:
            ends = np.unique(graph.triples[graph.triples[:, 1] == last][:, 2])
            return [graph.entities[int(i)] for i in ends]
    if names is None:
        raise PrivacyError(
            "where labels are protected, the list of labels must not come from them: a label only one entity has would betray it. "
            "Say which there are: --label-names FILE (one a line), or with commas."
        )
    if isinstance(names, (str, Path)):
        path = Path(names)
        words = path.read_text(encoding="utf-8").splitlines() if path.is_file() else str(names).split(",")
    else:
        words = list(names)
    found = list(dict.fromkeys(word.strip() for word in words if word.strip()))
    if len(found) < 2:
        raise ConfigError(f"a list of labels has two or more, found {found}.")
    return found


def _without(graph: Graph, names: list[str]) -> np.ndarray:
    """Which statements stay."""
    leave = [graph.relations.id(name) for name in names]
    return ~np.isin(graph.triples[:, 1], leave)


def _task(graph: Graph, kept: np.ndarray, labels: Labels, folds: Folds, config: ClassifyConfig) -> Task:
    """Every statement once, wherever it is and however often: what one statement changes is what is charged."""
    secret = np.concatenate([graph.secret(split) for split in graph.splits])
    if config.guarantee == "none":
        if config.drop_confidential:
            kept, secret = kept & ~secret, np.zeros_like(secret)
        secret = np.zeros_like(secret)  # all is read as it is
    nodes = len(graph.entities)
    keys = graph.keys(graph.triples)
    secret = np.isin(keys, keys[secret])  # a statement that is confidential anywhere is so everywhere
    first = np.zeros(len(keys), bool)
    first[np.unique(keys, return_index=True)[1]] = True
    kept = kept & first
    return Task(
        graph.triples[kept], secret[kept], nodes, len(graph.relations), labels, folds, truth_of(labels, nodes)
    )
