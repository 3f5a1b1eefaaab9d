"""Scorers, one small file each; a new file is found by itself. ``create(name, dimension)`` makes one.

base, similarity: what every scorer is · gcn: graph convolutions · text: entities by their descriptions · prior: noisy counts
"""

from __future__ import annotations

from veilgraph.models.base import GenericModel, Model
from veilgraph.models.scorers import create, model_class, scorer_of

__all__ = ["GenericModel", "Model", "create", "model_class", "scorer_of"]
