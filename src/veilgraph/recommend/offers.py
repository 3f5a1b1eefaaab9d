"""What can be offered to whom: a score for every user and item, and which items a user has already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veilgraph.errors import ConfigError, InputError

if TYPE_CHECKING:
    from veilgraph.load.graph import Graph


STRETCH = 128  # items looked at together when the best are sought


@dataclass(frozen=True)
class Offers:
    """Rows are users, columns are items, both by their ids in the graph."""

    users: np.ndarray  # [u] entity ids
    items: np.ndarray  # [i] entity ids
    scores: np.ndarray  # [u, i] float32, from 0 (the user's worst) to 1 (the best)
    taken: np.ndarray  # [u, i] bool: known to have it
    counted: np.ndarray | None = None  # [i] how many people have an item, if these are not all of them
    public: bool = False  # whether the items are a public list (see catalogue.py)

    @property
    def popularity(self) -> np.ndarray:
        """How many people have each item."""
        return np.asarray(self.taken.sum(0)) if self.counted is None else self.counted

    def part(self, places: np.ndarray) -> Offers:
        """The same for some of the users, by their places."""
        own = self.users[places], self.items, self.scores[places], self.taken[places]
        return Offers(*own, self.popularity, self.public)

    def best(self, top: int, *, repeat: bool = False) -> np.ndarray:
        """``[u, top]`` columns of the best items, best first; taken ones only where they may ``repeat``."""
        return best_columns(self.scores if repeat else without(self.scores, self.taken), top)

    def allowed(self, *, repeat: bool) -> np.ndarray:
        """Which items a list may have."""
        return np.ones_like(self.taken) if repeat else ~self.taken


def without(scores: np.ndarray, those: np.ndarray) -> np.ndarray:
    """The scores, but lower than any for those."""
    out = scores.copy()
    np.copyto(out, -np.inf, where=those)
    return out


def best_columns(scores: np.ndarray, top: int) -> np.ndarray:
    """The ``top`` largest of every row, largest first; of equal ones the first column."""
    if top < 1 or top > scores.shape[1]:
        raise ConfigError(f"a list has between 1 and {scores.shape[1]:,} items, found {top}.")
    least = _least(scores, top)
    # the top ones, and others as good as the last
    rows, columns = np.divmod(np.flatnonzero((scores >= least).ravel()), scores.shape[1])
    order = np.lexsort((columns, -scores[rows, columns], rows))
    first = np.searchsorted(rows, np.arange(len(scores)))
    return np.asarray(columns[order[first[:, None] + np.arange(top)]])


def _least(scores: np.ndarray, top: int) -> np.ndarray:
    """``[u, 1]`` the ``top``-th largest of every row. The largest are in the stretches whose largest are largest."""
    users, items = scores.shape
    stretches = items // STRETCH
    if stretches < 2 * top:
        return np.asarray(-np.partition(-scores, top - 1, axis=1)[:, top - 1 : top])
    cut = scores[:, : stretches * STRETCH].reshape(users, stretches, STRETCH)
    places = np.argpartition(-cut.max(2), top - 1, axis=1)[:, :top]
    few = np.take_along_axis(cut, places[:, :, None], 1).reshape(users, -1)
    few = np.concatenate([few, scores[:, stretches * STRETCH :]], 1)
    return np.asarray(-np.partition(-few, top - 1, axis=1)[:, top - 1 : top])


def scaled(scores: np.ndarray) -> np.ndarray:
    """Every row from 0 to 1."""
    low, high = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):  # one that is no number makes both none
        raise InputError("the run gives scores that are not numbers: its training diverged. Train again.")
    out = np.asarray(scores - low, np.float32)
    out /= np.maximum(high - low, 1e-12).astype(np.float32)
    return out


def relation_of(graph: Graph, name: str | None = None) -> int:
    """The relation from users to items: the one named, or the commonest."""
    if name is not None:
        return graph.relations.id(name)
    return int(np.bincount(graph.train[:, 1], minlength=len(graph.relations)).argmax())


def table_of(
    graph: Graph, relation: int, splits: tuple[str, ...] = ("train",), items: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users of train, items (a public list, or those of train), and who has what by these splits: ``[u, i]`` bool.

    For graphs where that is small.
    """
    own = graph.train[graph.train[:, 1] == relation]
    if not len(own):
        raise InputError(f"no statement of {graph.relations[relation]} to recommend from.")
    users, items = np.unique(own[:, 0]), np.unique(own[:, 2]) if items is None else items
    taken = np.zeros((len(users), len(items)), bool)
    for split in splits:
        rows = graph.splits.get(split, np.empty((0, 3), np.int32))
        rows = rows[(rows[:, 1] == relation) & np.isin(rows[:, 0], users) & np.isin(rows[:, 2], items)]
        taken[np.searchsorted(users, rows[:, 0]), np.searchsorted(items, rows[:, 2])] = True
    return users, items, taken
