"""Whether an entity means the same as the head and as the tail of statements.

In many graphs it does: a class is told by its members as by what it is a member of. In others it does not (an author and the papers that
cite it, or a source that numbers heads and tails each for itself), and what reaches an entity in one role only blurs the other. A view
takes entities as one, or those of the other role for entities of their own, so that labels belong to entities as heads, or as tails.
A statement stays one statement between two entities, so bounds on what one changes stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from veilgraph.classify.guarantees.base import Task
from veilgraph.classify.spread import Spread

VIEWS = {"one": (0, 0), "heads": (0, 1), "tails": (1, 0)}  # who is an entity of its own: (head, tail)


def seen(triples: np.ndarray, nodes: int, view: str) -> tuple[np.ndarray, int]:
    """The same statements between entities of a view, and how many those are. Entities with labels keep their ids."""
    head, tail = VIEWS[view]
    if not head and not tail:
        return triples, nodes
    return triples.astype(np.int64) + np.array([head * nodes, 0, tail * nodes]), 2 * nodes


def viewed(task: Task, view: str) -> Task:
    """The same task between the entities of a view."""
    triples, nodes = seen(task.triples, task.nodes, view)
    truth = np.concatenate([task.truth, np.zeros((nodes - task.nodes, task.truth.shape[1]), np.float32)])
    return replace(task, triples=triples, nodes=nodes, truth=truth)


@dataclass(frozen=True)
class View:
    """A task between the entities of a view, and what labels spread there tell each entity by others' labels."""

    name: str
    task: Task
    spread: Spread
    told: np.ndarray

    @classmethod
    def of(cls, task: Task, name: str, seed: int) -> View:
        """The task in this view."""
        other = viewed(task, name)
        spread = Spread(other.unrestricted, other.nodes)
        return cls(name, other, spread, spread.honest(other.truth, task.folds.train, seed))

    @property
    def right(self) -> float:
        """How often a label that is known would have been told."""
        known = self.task.folds.train
        return float(self.task.truth[known, self.told[known].argmax(1)].mean())


def best_view(task: Task, seed: int) -> View:
    """The view in which labels, spread over unrestricted statements, tell those of other entities best.

    Reads: unrestricted statements and labels to learn from. Where labels are public, so is the choice.
    """
    return max((View.of(task, name, seed) for name in VIEWS), key=lambda view: view.right)
