"""What rows are asked: statements, or labels of entities. A plan takes either."""

from __future__ import annotations

from veilgraph.train.tasks.base import Task
from veilgraph.train.tasks.labels import Labelled
from veilgraph.train.tasks.links import Links

__all__ = ["Labelled", "Links", "Task"]
