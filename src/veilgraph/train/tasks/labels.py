"""Labels of entities, told from their rows by a linear layer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from veilgraph.load.folds import folds_of, truth_of
from veilgraph.load.graph import Graph
from veilgraph.load.labels import read_labels
from veilgraph.models.parameters import Parameters
from veilgraph.rank.classification import measure
from veilgraph.train.batches import LabelBatch
from veilgraph.train.gradients import Gradients, RowGradient
from veilgraph.train.tasks.base import Task

HEAD = "encoder.head"
SHARE = 0.5  # of the labelled entities, to learn from


class Labelled(Task):
    """All entities to learn from at once, one step an epoch."""

    def __init__(self, graph: Graph, seed: int) -> None:
        labels = read_labels(graph)
        self.several, self.kinds = labels.several, len(labels.names)
        self.folds = folds_of(labels, len(graph.entities), SHARE, seed)
        self.truth = torch.from_numpy(truth_of(labels, len(graph.entities)))

    @property
    def positives(self) -> float:
        return len(self.folds.train)

    @property
    def steps(self) -> int:
        return 1

    def batches(self, epoch: int) -> Iterator[LabelBatch]:
        yield LabelBatch(torch.from_numpy(self.folds.train))

    def start(self, width: int, rng: np.random.Generator) -> dict[str, Tensor]:
        return {HEAD: torch.zeros(width + 1, self.kinds)}

    def gradients(self, p: Parameters, batch: LabelBatch) -> Gradients:
        with torch.enable_grad():
            rows, head = p.entities.detach().requires_grad_(), p.weights[HEAD].detach().requires_grad_()
            out = rows[batch.entities] @ head[:-1] + head[-1]
            wanted = self.truth[batch.entities]
            loss = (
                functional.binary_cross_entropy_with_logits(out, wanted)
                if self.several
                else functional.cross_entropy(out, wanted)
            )
            on_rows, on_head = torch.autograd.grad(loss, [rows, head])
        nowhere = RowGradient(torch.empty(0, dtype=torch.int64), p.relations[:0])
        return Gradients(float(loss.detach()), RowGradient(None, on_rows), nowhere, {HEAD: on_head})

    def figures(self, p: Parameters) -> dict[str, float]:
        """accuracy and macro_f1 on the test fold."""
        head, test = p.weights[HEAD], torch.from_numpy(self.folds.test)
        out = (p.entities[test] @ head[:-1] + head[-1]).numpy()
        return measure(out, self.truth[test].numpy())
