"""Graphs whose entities have labels, and how well those are told."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.load import Graph, load, save
from veilgraph.load.datasets import there
from veilgraph.load.labels import labels_by, read_labels, write_labels
from veilgraph.load.vocabulary import Vocabulary
from veilgraph.mark import mark

PATIENTS = 2000
OF_PATIENTS = [
    "admittedTo", "citizenOf", "hasDiagnosis", "hasFinding", "hasSymptom", "insuredBy", "mayBenefitFrom", "takes", "treatedBy",
]  # fmt: skip
LABELLED = ("aifb", "wn18-nodeclass", "wn18-apart", "codex-s-types", "hospital-patients")


def labelled(name: str, folder: Path) -> Path:
    """A saved graph folder with labels in it, made if it is not there."""
    made, target = folder / f".{name}", folder / name
    if name == "hospital-patients":
        graph = load("builtin:hospital", patients=PATIENTS)
        found = labels_by(graph, "admittedTo/wardOf")
        words = found.words(graph)
        gone = np.isin(graph.train[:, 1], [graph.relations.id(n) for n in ("admittedTo", "treatedBy")])
        graph = graph.with_splits({"train": graph.train[~gone]})
        graph = graph.with_marks(
            mark(graph, relations=[n for n in OF_PATIENTS if n not in ("admittedTo", "treatedBy")])
        )
    else:
        source = {"aifb": there("aifb") / "triples.tsv.gz", "codex-s-types": there("codex-s")}.get(
            name, there("wn18-nodeclass")
        )
        graph = load(source)
        words = read_labels(graph).words(graph)
        graph = Graph(graph.entities, graph.relations, {"train": graph.triples})
        if name == "wn18-apart":
            graph = apart(graph)
    save(graph, made, force=True)
    write_labels(graph, words, made)
    made.rename(target)
    return target


def apart(graph: Graph) -> Graph:
    """The same statements with tails as entities of their own.

    In the WN18 graph with labels, tails are numbered otherwise than heads: of 146,442 statements none has its inverse among them (in
    WN18 nearly all have), and entities that share a hypernym's number as tail have the same label 97 times in 100, those that share it
    as head 8 times. Labels go with the heads' numbers.
    """
    names = [*graph.entities, *(f"tail/{name}" for name in graph.entities)]
    vocabulary, count = Vocabulary(names), len(graph.entities)
    at = vocabulary.ids(names)
    rows = {
        split: np.stack([at[a[:, 0]], a[:, 1], at[a[:, 2] + count]], 1) for split, a in graph.splits.items()
    }
    return Graph(vocabulary, graph.relations, rows)


def labels(run: None, graph: Graph, more: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of one classification; ``confidential`` is the share of statements that are, at random."""
    from veilgraph.classify import classify

    if more.get("confidential"):
        graph = graph.with_marks(mark(graph, random_share=more["confidential"], seed=more["seed"]))
    began = time.perf_counter()
    names = sorted(read_labels(graph).names)  # what a benchmark's labels are is known
    found = classify(graph, Path(graph.source), names=names, threads=1, seed=more["seed"], **more["settings"])
    keys = ("accuracy", "macro_f1", "precision@5", "epsilon", "delta", "guarantee")
    return {
        **{key: found.get(key) for key in keys},
        "seconds": time.perf_counter() - began,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
