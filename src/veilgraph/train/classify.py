"""Labels of entities learnt by a graph convolution: ``classify(graph, labels, model="kegcn")``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from veilgraph import machine
from veilgraph.errors import ConfigError, InputError, UnknownNameError
from veilgraph.evaluate.classification import measure
from veilgraph.evaluate.metrics import interval
from veilgraph.load import Graph, load
from veilgraph.load.labels import Labels, read_labels
from veilgraph.models.gcn import RECIPES, SCORES, Edges, Network, Recipe, score

FEW = 1000  # entities to learn from
CHUNK = 1 << 20  # edges whose messages are in memory at a time


@dataclass(frozen=True)
class ClassifyConfig:
    """The settings of one classification."""

    model: str = "kegcn"
    score: str | None = None  # of KE-GCN's messages; the recipe's, if not given
    bases: int = 0  # relation matrices are mixtures of so many; 0: as the recipe says
    dimension: int = 32
    layers: int = 5
    alpha: float | None = None  # weight of messages; the recipe's, if not given
    by_others: bool = True  # in the first layer a node is told by its neighbours alone
    hidden: float = 0.95  # share of nodes whose row is hidden while training
    dropout: float = 0.0
    learning_rate: float = 0.02
    penalty: float = 0.0  # on the nodes' rows
    epochs: int = 100
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.model not in RECIPES:
            raise UnknownNameError(
                "graph convolution", self.model, RECIPES, hint=f"There are: {', '.join(RECIPES)}."
            )
        if self.score is not None:
            score(self.score)
            if self.model != "kegcn":
                raise ConfigError(f"score belongs to kegcn: {self.model} is {self.model} by its own.")
        for name, low, high in (
            ("dimension", 1, 4096), ("layers", 1, 16), ("bases", 0, 4096), ("epochs", 1, 100_000), ("seed", 0, 2**63 - 1),
            ("hidden", 0, 0.99), ("dropout", 0, 0.99), ("learning_rate", 1e-9, 100), ("penalty", 0, 100),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} must be between {low:g} and {high:g}; found {value!r}.")
        many = SCORES[self.recipe.score].multiple_of
        if self.dimension % many:
            raise ConfigError(
                f"score {self.recipe.score} needs a dimension that is a multiple of {many}; found {self.dimension}."
            )

    @property
    def recipe(self) -> Recipe:
        """Which network that is."""
        found = RECIPES[self.model]
        if self.score is not None:
            found = replace(found, score=self.score)
        if self.alpha is not None:
            found = replace(found, alpha=self.alpha)
        return found.with_bases(self.bases)


def derived(labelled: int) -> dict[str, Any]:
    """Settings nobody chose, by the number of entities that are learnt from: few labels reach no further than two steps."""
    few = {"layers": 2, "hidden": 0.5, "epochs": 40}
    return few if labelled < FEW else {"layers": 5, "hidden": 0.95, "epochs": 100}


@dataclass(frozen=True)
class Folds:
    """Which labelled entities are learnt from, and which are told."""

    train: np.ndarray
    test: np.ndarray


def classify(
    graph: Graph | str | Path,
    labels: Labels | str | Path | None = None,
    *,
    seeds: int = 1,
    share: float = 0.1,
    listener: Callable[[int, int, float], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """task, model, accuracy with its interval over seeds, macro_f1 (precision@5), seeds, epsilon, delta, guarantee.

    Learns from the labels the source says are for training, or from a random ``share`` of the labelled entities, another for each
    seed; tells the others. All statements of the graph are edges.

    Reads confidential data: every statement and label. Releases: nothing; figures are for the curator.
    """
    graph = load(graph)
    found = labels if isinstance(labels, Labels) else read_labels(graph, labels)
    known = {field.name for field in fields(ClassifyConfig)}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise ConfigError(
            f"no setting of classify is called {unknown[0]!r}. There are: {', '.join(sorted(known))}."
        )
    if seeds < 1 or not 0 < share < 1:
        raise ConfigError("classify needs at least one seed, and a share between 0 and 1.")
    first = ClassifyConfig(**{**derived(len(folds_of(found, share, 0).train)), **settings})
    edges = Edges(graph.triples, len(graph.entities), len(graph.relations))
    results = []
    for number in range(seeds):
        config = replace(first, seed=first.seed + number)
        folds = folds_of(found, share, config.seed)
        results.append(learn(edges, found, folds, config, listener=listener))
    accuracy = [one["accuracy"] for one in results]
    return {
        "task": str(graph.source),
        "model": first.model,
        "score": first.recipe.score,
        "accuracy": float(np.mean(accuracy)),
        "interval": interval(accuracy),
        **{key: float(np.mean([one[key] for one in results])) for key in results[0] if key != "accuracy"},
        "labels": len(found.names),
        "seeds": seeds,
        "epsilon": None,
        "delta": None,
        "guarantee": "none",
    }


def folds_of(labels: Labels, share: float, seed: int) -> Folds:
    """The source's own division, or a random one."""
    if labels.fold is not None:
        train, test = (np.unique(labels.entity[labels.fold == name]) for name in ("train", "test"))
        return Folds(train, np.setdiff1d(test, train))
    order = np.random.default_rng(seed).permutation(np.unique(labels.entity))
    count = max(1, round(share * len(order)))
    if count >= len(order):
        raise InputError(
            f"{len(order)} labelled entities are too few to learn from {share:g} of them and tell others."
        )
    return Folds(order[:count], order[count:])


def learn(
    edges: Edges,
    labels: Labels,
    folds: Folds,
    config: ClassifyConfig,
    *,
    listener: Callable[[int, int, float], None] | None = None,
) -> dict[str, float]:
    """Figures on the test fold of one training over all edges at once.

    Reads confidential data: every edge, and labels of both folds. Releases: nothing.
    """
    machine.prepare(config.threads)
    torch.manual_seed(config.seed)
    widths = [config.dimension] * config.layers + [len(labels.names)]
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
    truth = np.zeros((edges.nodes, len(labels.names)), np.float32)
    truth[labels.entity, labels.label] = 1
    train = torch.from_numpy(folds.train)
    wanted = torch.from_numpy(truth[folds.train])
    for epoch in range(config.epochs):
        network.train()
        optimiser.zero_grad()
        out = network(edges).index_select(0, train)
        if labels.several:
            loss = functional.binary_cross_entropy_with_logits(out, wanted)
        else:
            loss = functional.cross_entropy(out, wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if listener is not None:
            listener(epoch + 1, config.epochs, float(loss.detach()))
    network.eval()
    with torch.no_grad():
        scores = network(edges).numpy()[folds.test]
    return measure(scores, truth[folds.test])
