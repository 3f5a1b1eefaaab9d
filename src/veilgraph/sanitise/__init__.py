"""Lists that may be shown: one file per sanitiser. ``sanitisers("random:keep=3")``, ``sanitisers("shuffle,popular:keep=5")``."""

from __future__ import annotations

from veilgraph.sanitise.base import Request, Sanitiser
from veilgraph.sanitise.chain import epsilon, promise, sanitise, sanitisers
from veilgraph.sanitise.erase import Eraser

__all__ = ["Eraser", "Request", "Sanitiser", "epsilon", "promise", "sanitise", "sanitisers"]
