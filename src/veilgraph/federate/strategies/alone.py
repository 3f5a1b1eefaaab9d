"""No exchange: every client gets its own entity rows back. What the others would have added is measured against it."""

from __future__ import annotations

from veilgraph.federate.strategies.fede import FedE


class Alone(FedE):
    """The same rounds, the same steps, nothing shared."""

    name = "alone"
    aggregates = False
