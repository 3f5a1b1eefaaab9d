"""Which cells (head, relation, tail) are asked about, and how probable a statement is in each before anybody answers.

How often an entity is, or might be, a head of a relation is its *intensity* there: what was counted, and for entities that were never
counted a share of what Good and Turing leave to the unseen (as much as there are entities counted once), divided by how alike their
other roles are. A cell's expectation is the product of its two intensities, over the relation's size. All cells whose expectation is at
least a threshold are candidates: heads and tails of a relation sorted by intensity, the cells of a head are a beginning of the tails,
so that millions of cells are a few thousand lengths, and none of them is ever written down.

Everything here is public: it follows from unrestricted statements, or from counts that were charged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

KINDS, SHARE = (
    20,
    4,
)  # of entities: directions in which roles are alike, at most, and no more than one for so many roles
TINY = 1e-9  # intensity: nothing is expected there


def seen_roles(statements: np.ndarray, entities: int, relations: int) -> np.ndarray:
    """How often each entity is a head (rows 0 … R−1) and a tail (R … 2R−1) of each relation, ``[2R, E]``."""
    head, relation, tail = statements.astype(np.int64).T
    flat = np.bincount(
        np.concatenate([relation * entities + head, (relations + relation) * entities + tail]),
        minlength=2 * relations * entities,
    )
    return flat.reshape(2 * relations, entities).astype(np.float32)


def intensities(counts: np.ndarray) -> np.ndarray:
    """What was counted, and for entities never counted in a role what is left to them, ``[2R, E]``."""
    alike = _affinity(counts)
    once = np.maximum(((counts > 0) & (counts <= 1)).sum(1), counts.any(1))
    alike[counts > 0] = 0
    total = alike.sum(1)
    alike *= np.divide(once, total, out=np.zeros_like(total), where=total > TINY)[:, None]
    alike += counts
    return alike


def _affinity(counts: np.ndarray) -> np.ndarray:
    """How much each role suits an entity, by the roles it has: a projection on the strongest directions of all entities' roles."""
    weights = np.log1p(counts)
    size = np.sqrt((weights**2).sum(1, keepdims=True)) + 1e-6
    weights /= np.sqrt(size)
    weights /= np.sqrt((weights**2).sum(0, keepdims=True)) + 0.5
    values, directions = np.linalg.eigh((weights @ weights.T).astype(np.float64))
    kinds = max(1, min(KINDS, int(counts.any(1).sum()) // SHARE))
    strongest = directions[:, np.argsort(-values, kind="stable")[:kinds]].astype(np.float32)
    return np.asarray(np.maximum(strongest @ (strongest.T @ weights), 0))


@dataclass(frozen=True)
class Candidates:
    """Rows of cells: row i is (relation, head) with the first ``lengths[i]`` of the relation's tails; cells are numbered row by row.

    >>> few = Candidates.at_least(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 4.0]]), np.array([1.0]), 2.0)
    >>> len(few), few.statements(np.arange(len(few))).tolist()
    (3, [[0, 0, 2], [0, 0, 1], [1, 0, 2]])
    """

    relations: int
    entities: int
    relation: np.ndarray  # [rows]
    head: np.ndarray  # [rows]
    starts: np.ndarray  # [rows + 1]
    tails: np.ndarray  # [2-d as flat: R · E] tails of each relation, the most intense first
    place: np.ndarray  # [R · E] where an entity is among them

    def __len__(self) -> int:
        return int(self.starts[-1])

    @classmethod
    def at_least(cls, intensity: np.ndarray, sizes: np.ndarray, threshold: float) -> Candidates:
        """All cells whose expectation, intensity × intensity / size of the relation, is at least this."""
        relations, entities = len(intensity) // 2, intensity.shape[1]
        order = np.argsort(-intensity[relations:], axis=1, kind="stable").astype(np.int32)
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.arange(entities, dtype=np.int32)[None].repeat(relations, 0), 1)
        rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for r in range(relations):
            most = -np.sort(-intensity[relations + r], kind="stable")
            head = np.flatnonzero(intensity[r] > TINY)
            least = threshold * max(float(sizes[r]), 1e-9) / intensity[r, head]
            length = np.searchsorted(-most, -least, side="right")
            length = np.minimum(length, int((most > 0).sum()))
            head, length = head[length > 0], length[length > 0]
            rows.append((np.full(len(head), r), head, length))
        relation, heads, lengths = (np.concatenate(part) for part in zip(*rows))
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return cls(
            relations, entities, relation.astype(np.int32), heads.astype(np.int32), starts,
            order.reshape(-1), place.reshape(-1),
        )  # fmt: skip

    def statements(self, cells: np.ndarray) -> np.ndarray:
        """The statements of cells, ``[n, 3]``."""
        row = np.searchsorted(self.starts, cells, side="right") - 1
        relation = self.relation[row].astype(np.int64)
        tail = self.tails[relation * self.entities + (cells - self.starts[row])]
        return np.column_stack([self.head[row], relation, tail]).astype(np.int32)

    def cells(self, statements: np.ndarray) -> np.ndarray:
        """The cells of statements, −1 for those that are no candidate."""
        head, relation, tail = statements.astype(np.int64).T
        keys = self.relation.astype(np.int64) * self.entities + self.head
        asked = relation * self.entities + head
        row = np.searchsorted(keys, asked).clip(max=max(len(keys) - 1, 0))
        if not len(keys):
            return np.full(len(statements), -1)
        place = self.place[relation * self.entities + tail]
        inside = (keys[row] == asked) & (place < self.starts[row + 1] - self.starts[row])
        return np.where(inside, self.starts[row] + place, -1)
