"""Statements to decide about: drawn at random, half of them planted in the victim's training statements.

Members and non-members are alike in everything but membership: no attack is praised for telling true statements from odd ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veilgraph.errors import InputError
from veilgraph.files import write_json
from veilgraph.load.graph import Graph

TARGETS = "targets.json"


@dataclass(frozen=True)
class Targets:
    """By name; ``holders`` says how many clients have each head and tail."""

    victim: str
    attacker: str
    statements: list[tuple[str, str, str]]
    member: np.ndarray  # [n] bool
    holders: np.ndarray  # [n, 2]

    def save(self, folder: Path) -> None:
        """For the researcher; the members are the victim's."""
        document = {
            "victim": self.victim,
            "attacker": self.attacker,
            "statements": self.statements,
            "member": self.member.tolist(),
            "holders": self.holders.tolist(),
        }
        write_json(folder / TARGETS, document, mode=0o600)

    @classmethod
    def read(cls, folder: Path) -> Targets:
        """Of a federation that was listened to."""
        try:
            found = json.loads((folder / TARGETS).read_text(encoding="utf-8"))
            return cls(
                found["victim"],
                found["attacker"],
                [tuple(one) for one in found["statements"]],
                np.array(found["member"], bool),
                np.array(found["holders"], np.int64),
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{folder} holds no transcript: run the federation with veil federate run … --listen --victim NAME --attacker NAME."
            ) from None


def plant(
    graphs: dict[str, Graph], victim: str, attacker: str, *, count: int = 1000, seed: int = 0
) -> tuple[Graph, Targets]:
    """The victim's graph with half of ``count`` random statements more, and all of them as targets.

    Their entities and relations are known to victim and attacker alike; no client has any of them.
    """
    for name in (victim, attacker):
        if name not in graphs:
            raise InputError(f"no client is called {name!r}; there are {', '.join(graphs)}.")
    if victim == attacker:
        raise InputError("an attacker that attacks itself learns nothing: name two clients.")
    mine, theirs = graphs[victim], graphs[attacker]
    entities = sorted(set(mine.entities) & set(theirs.entities))
    relations = sorted(set(mine.relations) & set(theirs.relations))
    if len(entities) < 10 or not relations:
        raise InputError(
            f"{victim} and {attacker} share {len(entities)} entities and {len(relations)} relations: there is nothing to "
            "attack by. Divide the graph by entity or at random (veil federate split --by entity)."
        )
    rng = np.random.default_rng(seed)
    weight = np.bincount(mine.train[:, 1], minlength=len(mine.relations)).astype(float)
    weight = weight[mine.relations.ids(relations)]
    ids, chosen = mine.entities.ids(entities), mine.relations.ids(relations)
    known = {tuple(row) for graph in graphs.values() for row in _in(mine, graph).tolist()}
    drawn: list[tuple[int, int, int]] = []
    for _ in range(100):
        heads, tails = rng.choice(ids, (2, count))
        kinds = rng.choice(chosen, count, p=weight / weight.sum())
        new = [
            t for t in zip(heads.tolist(), kinds.tolist(), tails.tolist()) if t[0] != t[2] and t not in known
        ]
        drawn = list(dict.fromkeys([*drawn, *new]))[:count]
        if len(drawn) == count:
            break
    if len(drawn) < count:
        raise InputError(f"{victim} and {attacker} share too little for {count} statements: ask for fewer.")
    member = np.zeros(count, bool)
    member[rng.permutation(count)[: count // 2]] = True
    rows = np.array(drawn, np.int32)
    planted = mine.with_splits({**mine.splits, "train": np.concatenate([mine.train, rows[member]])})
    named = [(mine.entities[h], mine.relations[r], mine.entities[t]) for h, r, t in drawn]
    held = {name: set(graph.entities) for name, graph in graphs.items()}
    holders = np.array([[sum(e in own for own in held.values()) for e in (h, t)] for h, _, t in named])
    return planted, Targets(victim, attacker, named, member, holders)


def _in(mine: Graph, graph: Graph) -> np.ndarray:
    """The statements of a graph by the numbers of another one, those it has all names of."""
    columns = [
        here.places(there.names(graph.triples[:, i]))
        for here, there, i in (
            (mine.entities, graph.entities, 0),
            (mine.relations, graph.relations, 1),
            (mine.entities, graph.entities, 2),
        )
    ]
    rows = np.stack(columns, 1)
    return rows[(rows >= 0).all(1)]
