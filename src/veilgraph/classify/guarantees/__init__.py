"""What can be promised about a graph whose labels are learnt, one small file each; a new file is found by itself."""

from __future__ import annotations

from veilgraph.classify.guarantees.base import Guarantee, Outcome, Task, guarantee

__all__ = ["Guarantee", "Outcome", "Task", "guarantee"]
