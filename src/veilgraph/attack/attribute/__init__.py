"""Attribute inference: what does somebody learn about a hidden attribute who sees recommendation lists?"""

from __future__ import annotations

from veilgraph.attack.attribute.inference import REGIMES, attack, attribute, measure, scene

__all__ = ["REGIMES", "attack", "attribute", "measure", "scene"]
