"""What a user who names only a model gets: every open setting, derived from the graph's size by fixed rules.

The rules were tuned on FB15k-237 and UMLS and tested on graphs they had never seen (docs/benchmarks.md).
They read sizes only: numbers of entities, relations and statements.
"""

from __future__ import annotations

import math

from veilgraph.config import TrainConfig
from veilgraph.load.graph import Graph
from veilgraph.models.base import Model

EXACT_CELLS = 3e11  # questions × entities × dimension an epoch may score; beyond, negatives are sampled


def complete(config: TrainConfig, graph: Graph, scorer: type[Model]) -> tuple[TrainConfig, str]:
    """The configuration with nothing left open, and one line saying what was chosen and why."""
    entities, statements = len(graph.entities), len(graph.train)
    chosen: dict[str, object] = {
        "loss": "softmax",
        "optimiser": "adagrad",
        "reciprocal": True,
        "regulariser": "none",
    }
    chosen.update(scorer.defaults)
    chosen.update({k: v for k, v in config.as_dict().items() if v is not None})
    distance = chosen["loss"] in ("self-adversarial", "margin")

    dimension = _dimension(entities, scorer.multiple_of, distance, chosen["model"] == "rescal")
    chosen.setdefault("dimension", dimension)
    affordable = 2 * statements * entities * int(str(chosen["dimension"])) <= EXACT_CELLS * 4
    exact = not distance and scorer.separable and chosen["loss"] in ("softmax", "softplus") and affordable
    chosen.setdefault("candidates", "all" if exact else "sampled")
    chosen.setdefault("batch", _batch(statements))
    chosen.setdefault(
        "chunk", min(int(str(chosen["batch"])), 128 if distance or not scorer.separable else 1024)
    )
    chosen.setdefault("negatives", _negatives(entities, distance, scorer.separable))
    chosen.setdefault("learning_rate", _rate(str(chosen["optimiser"]), distance))
    chosen.setdefault("margin", 9.0 if distance else 1.0)
    chosen.setdefault("temperature", 1.0)
    chosen.setdefault("regulariser_weight", _penalty(str(chosen["regulariser"]), graph))
    chosen.setdefault("dropout", 0.0)
    chosen.setdefault("averaging", 0.0 if distance else 1.0)
    chosen.setdefault("schedule", "plateau" if "valid" in graph.splits else "linear")
    per_epoch = max(statements, 1)
    chosen.setdefault("epochs", max(4, min(1000, math.ceil((2e8 if distance else 6e7) / per_epoch))))
    has_valid = "valid" in graph.splits and len(graph.splits["valid"])
    chosen.setdefault("validate_every", max(1, math.ceil(200_000 / per_epoch)) if has_valid else 0)
    chosen.setdefault("patience", 6)
    completed = config.with_values(**chosen)
    return completed, _explain(completed, entities, statements)


def _dimension(entities: int, multiple: int, distance: bool, matrices: bool) -> int:
    """Small graphs need few numbers; RESCAL's matrices grow with the square."""
    wanted = 32 * 2 ** max(0, min(3, round(math.log2(max(entities, 64) / 100) / 2.5)))
    if matrices:
        wanted = min(wanted, 128)
    return max(multiple, wanted // multiple * multiple)


def _batch(statements: int) -> int:
    """About 100 to 500 steps an epoch, between 128 and 1024 statements each."""
    return int(min(1024, max(128, 2 ** round(math.log2(max(statements, 2) / 100)))))


def _negatives(entities: int, distance: bool, separable: bool) -> int:
    return min(entities, (64 if distance else 1024) if separable else 32)


def _rate(optimiser: str, distance: bool) -> float:
    return {"sgd": 0.5, "adagrad": 0.1, "row-adagrad": 0.1, "adam": 0.002}[optimiser]


def _penalty(regulariser: str, graph: Graph) -> float:
    """Dense graphs (many statements per entity) need less."""
    return 0.05 if regulariser == "n3" else 0.01 if regulariser == "l2" else 0.0


def _explain(c: TrainConfig, entities: int, statements: int) -> str:
    wrong = (
        "all entities as candidates" if c.candidates == "all" else f"{c.negatives} shared negatives a side"
    )
    penalty = f", {c.regulariser} {c.regulariser_weight:g}" if c.regulariser != "none" else ""
    return (
        f"{c.model}: dimension {c.dimension}, {c.loss} loss over {wrong}, {c.optimiser} {c.learning_rate:g}{penalty}, "
        f"batches of {c.batch}, at most {c.epochs} epochs — from {entities:,} entities and {statements:,} statements."
    )
