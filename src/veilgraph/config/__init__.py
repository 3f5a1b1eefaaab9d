"""Settings: ``asked`` is what somebody said, by flat keys and with gaps; ``settled`` is what holds, in sections and without."""

from __future__ import annotations

from veilgraph.config.asked import ENCODER, PRIVATE_ONLY, TEXT, TrainConfig
from veilgraph.config.declare import Setting
from veilgraph.config.settled import Settled, settle

__all__ = ["ENCODER", "PRIVATE_ONLY", "TEXT", "Setting", "Settled", "TrainConfig", "settle"]
