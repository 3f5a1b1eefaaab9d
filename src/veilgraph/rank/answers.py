"""The known answers of every question (source, relation, ?), found by bisection in one sorted table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Ids = np.ndarray


@dataclass(frozen=True)
class Answers:
    """For one side: sorted question keys and, beside them, their answers."""

    keys: Ids  # int64, sorted; one per known statement
    answers: Ids  # int64
    relations: int

    @classmethod
    def of(cls, triples: Ids, relations: int, *, side: str) -> Answers:
        """All statements as answers to «which tail?» (``side="tail"``) or «which head?»."""
        source, answer = (0, 2) if side == "tail" else (2, 0)
        triples = triples.astype(np.int64, copy=False)
        key = triples[:, source] * relations + triples[:, 1]
        order = np.lexsort((triples[:, answer], key))
        key, found = key[order], triples[order, answer]
        new = np.ones(len(key), bool)
        new[1:] = (key[1:] != key[:-1]) | (found[1:] != found[:-1])
        return cls(key[new], np.ascontiguousarray(found[new]), relations)

    def spans(self, source: Ids, relation: Ids) -> tuple[Ids, Ids]:
        """Where the answers of each question begin and end in ``answers``."""
        key = source.astype(np.int64) * self.relations + relation
        return np.searchsorted(self.keys, key, "left"), np.searchsorted(self.keys, key, "right")
