"""What a user who names only a model gets: every open setting, derived from the graph's size by fixed rules.

The rules were tuned on FB15k-237, UMLS and Kinship; `veil bench quality --set defaults` is their test on other graphs.
They read sizes only: numbers of entities, relations and statements.
"""

from __future__ import annotations

import math
from typing import Any

from veilgraph.config import TrainConfig
from veilgraph.load.graph import Graph
from veilgraph.models.base import Model

EXACT_PRODUCTS = 1e12  # multiplications an epoch may spend on scoring all entities with a dot product …
EXACT_DISTANCES = 2e10  # … or with a distance; beyond, wrong answers are sampled
SMALL = 50_000  # statements; graphs up to here need dropout more than a penalty


ENCODED = {  # with a graph convolution in front of the scorer
    "optimiser": "adam",
    "learning_rate": 0.01,
    "regulariser": "none",
    "averaging": 0.0,
    "dimension": 64,
    "encoder_layers": 1,
    "encoder_bases": 0,
    "encoder_edges": 30_000,
    "task": "links",
    "epochs": 30,
}


DESCRIBED = {  # with entity rows made from descriptions
    "optimiser": "adam",
    "learning_rate": 0.002,
    "regulariser": "none",
    "averaging": 0.0,
    "dimension": 256,
    "candidates": "sampled",
    "loss": "softmax",
    "negatives": 1024,
    "dropout": 0.0,
    "epochs": 10,
}


def complete(
    config: TrainConfig, graph: Graph, scorer: type[Model], statements: int | None = None
) -> tuple[TrainConfig, str]:
    """The configuration with nothing left open, and one line saying what was chosen and why.

    Under privacy the graph holds only unrestricted statements, and ``statements`` may be a noisy count.
    """
    entities, statements = len(graph.entities), max(statements or len(graph.train), 1)
    chosen: dict[str, Any] = {
        "optimiser": "adagrad",
        "reciprocal": True,
        "regulariser": "none",
        **scorer.defaults,
    }
    if config.encoder is not None:
        chosen |= ENCODED
    if config.text is not None:
        chosen |= {**DESCRIBED, "text_mix": _mix(graph), "text_hidden": 0}
    chosen.update({k: v for k, v in config.as_dict().items() if v is not None})
    chosen.setdefault("dimension", _dimension(entities, scorer.multiple_of, chosen["model"] == "rescal"))

    # All entities as candidates where an epoch can afford it, and with the loss that goes with it.
    distance = scorer.defaults.get("loss") == "self-adversarial"
    cost = 2.0 * statements * entities * chosen["dimension"]
    affordable = scorer.separable and cost <= (EXACT_DISTANCES if distance else EXACT_PRODUCTS)
    if affordable and config.loss is None and config.candidates != "sampled":
        chosen["loss"] = "softmax"
    fits = affordable and chosen["loss"] in ("softmax", "softplus")
    chosen.setdefault("candidates", "all" if fits else "sampled")

    for key, value in _rest(graph, scorer, chosen, statements).items():
        chosen.setdefault(key, value)
    if chosen["model"] == "marginals":
        chosen["prior"] = "marginals"
    chosen.setdefault("chunk", min(chosen["batch"], 128 if distance or not scorer.separable else 1024))
    completed = config.with_values(**chosen)
    return completed, _explain(completed, entities, statements)


def _rest(graph: Graph, scorer: type[Model], chosen: dict[str, Any], statements: int) -> dict[str, Any]:
    """What follows from sizes and from what was chosen before."""
    entities, judged = len(graph.entities), len(graph.splits.get("valid", ())) > 0
    distance = scorer.defaults.get("loss") == "self-adversarial"
    return {
        "batch": _batch(statements),
        "negatives": min(entities, (64 if distance else 1024) if scorer.separable else 32),
        "learning_rate": _rate(chosen["optimiser"], chosen["candidates"] == "all" or statements <= SMALL),
        "margin": 9.0 if distance else 1.0,
        "temperature": 1.0,
        "regulariser_weight": _penalty(chosen["regulariser"], statements),
        "dropout": 0.2 if statements <= SMALL and scorer.separable else 0.0,
        "averaging": 1.0,
        "schedule": "plateau" if judged else "linear",
        "epochs": max(4, min(1000, math.ceil((2e8 if distance else 6e7) / statements))),
        "validate_every": math.ceil(200_000 / statements) if judged else 0,
        "patience": 6,
    }


def _mix(graph: Graph) -> str:
    """Text alone where new entities are to be asked about, or where no statement may teach a structure; else a learnt gate."""
    return "text" if graph.held_out.any() or not len(graph.train) else "learnt"


def _dimension(entities: int, multiple: int, matrices: bool) -> int:
    """128 up to a few thousand entities, then 256; RESCAL's matrices grow with the square, so at most 128."""
    wanted = 128 if entities < 5000 or matrices else 256
    return max(multiple, wanted // multiple * multiple)


def _batch(statements: int) -> int:
    """About 100 to 500 steps an epoch, between 128 and 1024 statements each."""
    return int(min(1024, max(128, 2 ** round(math.log2(max(statements, 2) / 100)))))


def _rate(optimiser: str, quick: bool) -> float:
    return {"sgd": 0.5, "adagrad": 0.1, "row-adagrad": 0.1, "adam": 0.01 if quick else 0.002}[optimiser]


def _penalty(regulariser: str, statements: int) -> float:
    """Large graphs need the penalty; small ones have dropout."""
    return {"n3": 0.01 if statements <= SMALL else 0.05, "l2": 0.001}.get(regulariser, 0.0)


def _explain(c: TrainConfig, entities: int, statements: int) -> str:
    wrong = (
        "all entities as candidates" if c.candidates == "all" else f"{c.negatives} shared negatives a side"
    )
    penalty = f", {c.regulariser} {c.regulariser_weight:g}" if c.regulariser != "none" else ""
    dropout = f", dropout {c.dropout:g}" if c.dropout else ""
    return (
        f"{c.model}: dimension {c.dimension}, {c.loss} loss over {wrong}, {c.optimiser} {c.learning_rate:g}{penalty}{dropout}, "
        f"batches of {c.batch}, at most {c.epochs} epochs — from {entities:,} entities and {statements:,} statements."
    )
