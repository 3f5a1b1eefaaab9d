"""ε of a list of events at a given δ: by privacy-loss distributions (tight), by Rényi divergence (always there), and by adding up.

All are upper bounds, so the smallest may be claimed. Releases that have an ε without a δ add up to such a one: only they can be promised at
δ = 0. Reading ε changes nothing.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from veilgraph.account.cost import affordable, require_countable
from veilgraph.account.events import Event, failures, is_private, is_pure, repeated, to_accounting, zcdp
from veilgraph.errors import VerificationError

DELTA = 1e-6  # where nobody says another
ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(11, 65)) + [2**i for i in range(7, 15)]
FINE, COARSE = (
    1e-4,
    1e-3,
)  # steps of the privacy-loss grid: both are sound, the finer one is tighter and slower


class Spent(NamedTuple):
    """ε at one δ; infinite where nothing can be promised, None where the events do not allow the method."""

    epsilon: float
    delta: float
    pld: float | None
    rdp: float
    added: float = math.inf  # pure ones by adding up, and the others' bound

    @property
    def method(self) -> str:
        """Which bound is claimed."""
        if self.added < min(self.rdp, math.inf if self.pld is None else self.pld):
            return "sum"
        return "PLD" if self.pld is not None and self.pld <= self.rdp else "RDP"


def spent(events: Iterable[Event], delta: float, *, grid: float = FINE) -> Spent:
    """What these events cost together."""
    merged = merge(events)
    if not merged:
        return Spent(0.0, delta, 0.0, 0.0)
    require_countable(merged)
    if not all(is_private(event) for event in merged):
        return Spent(math.inf, delta, None, math.inf)
    left = delta - sum(failures(event) for event in merged)
    if left <= 0 and all(map(is_pure, merged)) and delta == 0:
        added = sum(map(_pure, merged))
        return Spent(added, delta, None, math.inf, added)
    if left <= 0:
        return Spent(math.inf, delta, None, math.inf)
    try:
        pld, rdp = _bounds(json.dumps(merged), left, grid)
    except (ArithmeticError, ValueError, MemoryError) as error:
        raise VerificationError(
            f"what the ledger holds cannot be accounted for ({error}): no ε can be given."
        ) from None
    added = math.inf
    if any(map(is_pure, merged)):
        others = [event for event in merged if not is_pure(event)]
        added = sum(map(_pure, merged)) + spent(others, delta, grid=grid).epsilon
    return Spent(min(rdp, added, pld if pld is not None else math.inf), delta, pld, rdp, added)


def _pure(event: Event) -> float:
    """ε of an event without a δ; 0 for others."""
    if event["event"] == "repeated":
        return int(event["times"]) * _pure(event["of"])
    return float(event["epsilon"]) if event["event"] == "pure" else 0.0


def merge(events: Iterable[Event]) -> list[Event]:
    """The same events, equal ones counted instead of listed."""
    counts: dict[str, int] = {}
    waiting = [(event, 1) for event in events]
    while waiting:
        event, times = waiting.pop()
        if event["event"] == "repeated":
            waiting.append((event["of"], times * int(event["times"])))
        elif event["event"] == "together":
            waiting += [(part, times) for part in event["all"]]
        elif times and event["event"] != "nothing":
            text = json.dumps(event, sort_keys=True)
            counts[text] = counts.get(text, 0) + times
    return [repeated(times, json.loads(text)) for text, times in sorted(counts.items())]


def _concentrated(event: Event) -> Event:
    """The same with ε without a δ as the ρ it is at most, ε²/2 (Bun & Steinke 2016, Proposition 1.4), for Rényi divergences."""
    if event["event"] == "pure":
        return zcdp(float(event["epsilon"]) ** 2 / 2)
    inner = {"of": _concentrated(event["of"])} if "of" in event else {}
    parts = {"all": [_concentrated(part) for part in event["all"]]} if "all" in event else {}
    return {**event, **inner, **parts}


@lru_cache(maxsize=4096)
def _bounds(document: str, delta: float, grid: float) -> tuple[float | None, float]:
    by_rdp = float(_divergences(document).get_epsilon(delta))
    if by_rdp > 200:  # the grid would not fit in memory, and the promise is empty either way
        return None, by_rdp
    pld = losses(document, grid)
    return (float(pld.get_epsilon(delta)) if pld is not None else None), by_rdp


@lru_cache(maxsize=64)
def _divergences(document: str) -> Any:
    """Rényi divergences of these events, whatever δ is asked for."""
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    logging.getLogger("absl").setLevel(logging.ERROR)  # «failed to converge» lines for fractional orders
    rdp = RdpAccountant(ORDERS)
    try:
        rdp.compose(dp.ComposedDpEvent([to_accounting(_concentrated(e)) for e in json.loads(document)]))
    except dp.privacy_accountant.UnsupportedEventError as error:
        raise VerificationError(f"the ledger holds events nobody can account for: {error}") from None
    return rdp


@lru_cache(maxsize=2)
def losses(document: str, grid: float) -> Any:
    """The privacy-loss distribution of these events, whatever δ is asked for; None where there is none, or it would take hours."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    merged = json.loads(document)
    event = dp.ComposedDpEvent([to_accounting(one) for one in merged])
    pld = PLDAccountant(value_discretization_interval=grid)
    if not pld.supports(event) or not affordable(merged):
        return None
    pld.compose(event)
    return pld
