"""The same encoders, the same rounds, nothing shared: what Fed-KE-GCN is measured against."""

from __future__ import annotations

from veilgraph.federate.strategies.fedkegcn import FedKEGCN


class KEGCNAlone(FedKEGCN):
    """Every client gets its own bases back."""

    name = "kegcn-alone"
    aggregates = False
