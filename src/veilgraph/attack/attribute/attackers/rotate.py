"""The paper's attacker: a small RotatE on the graph of who gets what, and who is what; values are ranked for the others.

It sees the lists of everybody while it learns, those of its targets too (without their values). A feature that is not
zero is a statement; how large it is does not matter, so neither does the order of a list.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from veilgraph.attack.attribute.attackers.base import Attacker, fair
from veilgraph.load.graph import Graph
from veilgraph.load.vocabulary import Vocabulary
from veilgraph.rank.scoring import score_rows
from veilgraph.train import train

HIDDEN = 5
SETTINGS: dict[str, Any] = {"model": "rotate", "dimension": 70, "epochs": 100, "batch": 64}  # the paper's
OURS: dict[str, Any] = {"candidates": "sampled", "negatives": 64, "threads": 1}  # what it does not say


class Rotate(Attacker):
    """Dimension 70, 100 epochs, batches of 64."""

    name = "rotate"
    slow = True

    def chances(
        self, known: sparse.csr_matrix, values: np.ndarray, unknown: sparse.csr_matrix, kinds: int
    ) -> np.ndarray:
        everybody = sparse.vstack([known, unknown]).tocoo()
        people, things = everybody.shape
        names = [
            f"{kind}{i:08d}" for kind, n in (("a", people), ("b", things), ("c", kinds)) for i in range(n)
        ]
        gets = np.stack([everybody.row, np.zeros(len(everybody.row), np.int64), people + everybody.col], 1)
        is_ = np.stack([np.arange(len(values)), np.ones(len(values), np.int64), people + things + values], 1)
        graph = Graph(
            Vocabulary(names),
            Vocabulary(["gets", "is"], "relation"),
            {"train": np.concatenate([gets, is_]).astype(np.int32)},
        )
        with tempfile.TemporaryDirectory(prefix="veil-attack-") as folder:
            run = train(graph, out=Path(folder) / "run", **{**SETTINGS, **OURS})
            asked = torch.arange(len(values), people)
            scores = score_rows(
                run.model,
                run.parameters,
                asked,
                torch.ones_like(asked),
                run.parameters.entities[people + things :],
                side="tail",
                reciprocal=bool(run.config.reciprocal),
            )
        return np.asarray(scores.numpy(), float)

    def guess(
        self, known: sparse.csr_matrix, values: np.ndarray, unknown: sparse.csr_matrix, kinds: int
    ) -> tuple[np.ndarray, float]:
        """By one training, since it is long: every fifth known person is hidden among the unknown, and tells what is fair."""
        hidden = np.arange(len(values)) % HIDDEN == 0
        both = sparse.vstack([known[hidden], unknown], format="csr")
        found = self.chances(known[~hidden], values[~hidden], both, kinds)
        count = int(hidden.sum())
        usual, right = fair(found[:count], values[hidden])
        return found[count:] - usual, right
