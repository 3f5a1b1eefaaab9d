"""A condition nobody had: things that training never met, known by their description alone, linked by a private run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veilgraph.account.statement import rounded_up
from veilgraph.load import Graph
from veilgraph.load.graph import HELD_OUT
from veilgraph.rank.metrics import harmonic, summarise
from veilgraph.rank.ranking import Ranker
from veilgraph.report.blocks import Grid, Section, Words
from veilgraph.rng import Streams
from veilgraph.run.run import Run
from veilgraph.train import train

SHARE = 0.1  # of the things of a kind


def introduce(
    graph: Graph,
    out: Path,
    *,
    kind: str,
    relations: Sequence[str],
    listener: Callable[[Any], None] | None = None,
    seed: int = 0,
    **settings: Any,
) -> dict[str, Any]:
    """run, new, relations, example: a run that never met some things of a kind, and how it ranks what they are linked to.

    Reads confidential data: through the private training alone; what is ranked are unrestricted facts about the new things.
    Releases: nothing; findings are for the curator.
    """
    things = np.array([i for i, name in enumerate(graph.entities) if name.startswith(kind)])
    count = max(1, round(SHARE * len(things)))
    new = np.sort(Streams(seed).numpy("split", 2).permutation(things)[:count])
    known = {name: array[~np.isin(array[:, [0, 2]], new).any(1)] for name, array in graph.splits.items()}
    without = replace(graph.with_splits(known), extra={**graph.extra, HELD_OUT: new.tolist()})
    run = train(
        without, out=out, text="pooled", public_descriptions="all", seed=seed, listener=listener, **settings
    )
    ranker, found = Ranker(graph.triples, len(graph.relations)), {}
    for name in relations:
        about = graph.triples[:, 1] == graph.relations.id(name)
        asked = graph.triples[about & np.isin(graph.triples[:, 0], new)]
        if graph.is_secret(asked).any() or not len(asked):
            continue  # only what everybody may know
        ranks = ranker.rank(run.model, run.parameters, asked, reciprocal=bool(run.config.reciprocal))
        tail = ranks.side == "tail"
        n = ranks.candidates[tail].astype(float)
        chance = float((harmonic(n) / n).mean())
        found[name] = {
            **summarise(ranks.rank[tail], ranks.candidates[tail]),
            "chance": chance,
            "facts": int(tail.sum()),
        }
    first = int(new[0])
    words = graph.descriptions[first].as_py()
    example = {
        "name": graph.entities[first],
        "text": words,
        "answers": {name: run.predict(describe=words, relation=name, top=3) for name in found},
    }
    return {"run": str(run.folder), "new": count, "kind": kind, "relations": found, "example": example}


def section(found: dict[str, Any], run: Run) -> Section:
    """The findings as a part of a report."""
    kind, example = found["kind"].rstrip("/"), found["example"]
    promised = f"ε = {rounded_up(run.epsilon, 3)}" if run.epsilon is not None else "no privacy"
    rows = [
        (name, m["facts"], m["mrr"], m["hits@3"], m["chance"], f"{m['mrr'] / m['chance']:.0f} ×")
        for name, m in found["relations"].items()
    ]
    answers = [(name, ", ".join(a["entity"] for a in given)) for name, given in example["answers"].items()]
    return Section(
        f"A {kind} nobody had",
        [
            Words(
                f"{found['new']} of the graph's {kind}s were kept from a training on descriptions ({promised}), with every statement "
                "about them. Their descriptions alone say where they belong. (It is one more run on the same graph: what runs promise "
                "adds up. In the made-up hospital a description names specialty and drugs: finding them shows that the text is read, not "
                f"that medicine was learnt.) One of them: «{example['text']}»"
            ),
            Grid(("asked about it", "best three answers"), answers),
            Grid(("relation", "facts", "MRR", "among the first three", "MRR by chance", "better by"), rows),
        ],
    )
