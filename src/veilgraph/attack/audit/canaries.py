"""Canaries: statements that were never true, about entities nobody else speaks of, in or out by fair coins.

Every canary has its own head and tail, added to the (public) vocabulary whether it is in or not, so that nothing but the
statement itself differs between the two worlds. For units of several statements a canary is a whole unit: one head with
as many statements as the cap allows, about the same tail as long as there are relations, because statements that meet
the same rows are what a careless clip gets wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from veilgraph.load.graph import HELD_OUT, Graph
from veilgraph.load.marks import Marks
from veilgraph.load.vocabulary import Vocabulary
from veilgraph.mark import may_be_confidential

PREFIX = "~canary"


@dataclass(frozen=True)
class Canaries:
    """The graph with the canaries that are in, all of them as statements, and who is in."""

    graph: Graph
    statements: np.ndarray  # [canaries, per_unit, 3]
    included: np.ndarray  # [canaries]


def plant(
    graph: Graph, count: int, rng: np.random.Generator, *, chance: float = 0.5, alike: bool = False
) -> Canaries:
    """A marked graph with ``count`` canary units, each in with this chance; those that are ``alike`` all speak of one relation."""
    assert graph.marks is not None
    per_unit = graph.marks.per_unit
    choices = np.flatnonzero(may_be_confidential(graph))[: 1 if alike else None]
    several = -(-per_unit // len(choices))  # tails a unit needs
    heads = [f"{PREFIX}/{i:06d}/head" for i in range(count)]
    tails = [f"{PREFIX}/{i:06d}/tail/{j:03d}" for i in range(count) for j in range(several)]
    entities = Vocabulary([*graph.entities, *heads, *tails])
    place = entities.places(graph.entities)
    turn = np.arange(per_unit)
    relation = rng.permuted(np.tile(choices, (count, 1)), axis=1)[:, turn % len(choices)]
    statements = np.stack(
        [
            np.repeat(entities.places(heads)[:, None], per_unit, 1),
            relation,
            entities.places(tails).reshape(count, several)[:, turn // len(choices)],
        ],
        2,
    ).astype(np.int32)
    included = rng.random(count) < chance
    added = statements[included].reshape(-1, 3)
    splits, masks = {}, {}
    for split, array in graph.splits.items():
        moved = np.column_stack([place[array[:, 0]], array[:, 1], place[array[:, 2]]]).astype(np.int32)
        more = added if split == "train" else added[:0]
        splits[split] = np.concatenate([moved, more])
        masks[split] = np.concatenate([graph.secret(split), np.ones(len(more), bool)])
    marks: Marks = replace(graph.marks, masks=masks)
    texts = None
    if graph.descriptions is not None:
        moved_texts = np.full(len(entities), None, dtype=object)
        moved_texts[place] = graph.descriptions.to_pylist()
        texts = pa.array(moved_texts.tolist(), pa.large_string())
    extra = dict(graph.extra)
    if HELD_OUT in extra:
        extra[HELD_OUT] = place[graph.held_out].tolist()
    planted = Graph(entities, graph.relations, splits, texts, "", extra, marks)
    return Canaries(planted, statements, included)
