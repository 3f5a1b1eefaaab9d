"""A graph convolution trained on labels, over all edges at once, without noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from veilgraph.classify.config import ClassifyConfig
from veilgraph.classify.guarantees.base import Task
from veilgraph.models.gcn import Edges, Network

CHUNK = 1 << 20  # edges whose messages are in memory at a time
Listener = Callable[[int, int, float], None]  # epoch, epochs, loss


def network_scores(
    edges: Edges, task: Task, config: ClassifyConfig, *, listener: Listener | None = None
) -> np.ndarray:
    """``[nodes, labels]`` after training on the labels of the training fold.

    Reads: the edges it is given, and labels of the training fold. Where those are public, so are its scores.
    """
    torch.manual_seed(config.seed)
    widths = [config.dimension] * config.layers + [len(task.labels.names)]
    network = Network(
        config.recipe,
        edges.nodes,
        edges.relations,
        widths,
        by_others=config.by_others,
        hidden=config.hidden,
        dropout=config.dropout,
        chunk=CHUNK,
    )
    rows = [parameter for name, parameter in network.named_parameters() if name != "nodes"]
    groups: list[dict[str, Any]] = [
        {"params": [network.nodes], "weight_decay": config.penalty},
        {"params": rows},
    ]
    optimiser = torch.optim.Adam(groups, lr=config.learning_rate)
    train = torch.from_numpy(task.folds.train)
    wanted = torch.from_numpy(task.truth[task.folds.train])
    for epoch in range(config.epochs):
        network.train()
        optimiser.zero_grad()
        out = network(edges).index_select(0, train)
        if task.labels.several:
            loss = functional.binary_cross_entropy_with_logits(out, wanted)
        else:
            loss = functional.cross_entropy(out, wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if listener is not None:
            listener(epoch + 1, config.epochs, float(loss.detach()))
    network.eval()
    with torch.no_grad():
        return network(edges).numpy()
