"""Scorers by name: ``create("rotate", 128)``; ``pykeen:TransD`` wraps any PyKEEN interaction."""

from __future__ import annotations

from veilgraph import registry
from veilgraph.config import TrainConfig, settle
from veilgraph.models.base import Model
from veilgraph.models.pykeen_interaction import interaction_model


def model_class(name: str) -> type[Model]:
    """The scorer of that name."""
    if name.startswith("pykeen:"):
        return interaction_model(name.removeprefix("pykeen:"))
    found: type[Model] = registry.find("models", name)
    return found


def create(name: str, dimension: int, *, norm: int = 1) -> Model:
    """A scorer by name, e.g. ``create("rotate", 128)``."""
    return model_class(name)(dimension, norm=norm)


def scorer_of(config: TrainConfig) -> Model:
    """The scorer of a configuration."""
    chosen = settle(config).scorer
    return create(chosen.name, chosen.dimension, norm=chosen.norm)
