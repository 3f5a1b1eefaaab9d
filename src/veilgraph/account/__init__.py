"""What was spent and what it means: events, ledger, ε, calibration, certificate."""

from __future__ import annotations

from veilgraph.account.calibrate import calibrate
from veilgraph.account.epsilon import Spent, spent
from veilgraph.account.ledger import Ledger

__all__ = ["Ledger", "Spent", "calibrate", "spent"]
