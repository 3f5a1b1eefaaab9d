"""What computing ε would cost, before it is computed: a ledger from elsewhere must not keep whoever verifies it busy for ever.

A privacy-loss distribution is a table with a row for every step of a grid; it is made once for every distinct event, composed with
itself and with all others. How many rows that takes follows from the events alone, so it is estimated first. Where it is too much,
Rényi divergence is claimed, which is always there; where there are too many events even for that, nothing is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from veilgraph.account.events import MOST_TIMES, Event, inside
from veilgraph.errors import VerificationError

EVENTS = 200  # that differ: each takes a quarter of a second by Rényi divergence (trainings have a dozen, with noise that falls)
CELLS = 16e6  # rows of tables, each some 5 to 10 millionths of a second (an ordinary run takes a tenth of a million, or two)
GRID = 1e-4  # always judged by the finest grid, so that calibrating on a coarse one and claiming on the fine one agree
REACH = 10.1  # deviations at which the accountant cuts a Gaussian off: half of e^-50 on each side
SPREAD = 16.8  # deviations of a composed loss that it keeps: 2e-15 outside, by Chernoff
SPARSE = 1000  # rows up to which it computes rows^times as a whole number, to see whether tables stay small
DIGITS = 1.6e7  # bits of such a number that take as long as three million rows; twice as many take three times as long


def require_countable(merged: Sequence[Event]) -> None:
    """Raise where a ledger holds more than any training charges: its ε could be computed, and nobody would wait for it."""
    leaves = sum(map(_leaves, merged))
    if leaves > EVENTS:
        raise VerificationError(
            f"the ledger charges {leaves:,} releases that all differ, and no training charges more than {EVENTS}: computing their ε would "
            "take hours. It was not written by this program, or was changed: ask whoever it is from for the file as it was."
        )
    most = max((int(one["times"]) for one in merged if one["event"] == "repeated"), default=0)
    if most > MOST_TIMES:
        raise VerificationError(
            f"the ledger charges a release {most:.3g} times, and nothing is done more than {MOST_TIMES:.0e} times: it was not written by "
            "this program, or was changed. Ask whoever it is from for the file as it was."
        )


def _leaves(event: Event) -> int:
    parts = inside(event)
    return sum(map(_leaves, parts)) if parts else 1


def affordable(merged: Sequence[Event]) -> bool:
    """Whether a privacy-loss distribution of these events is made in minutes. Of events that have one."""
    rows = variance = widest = 0.0
    for event in merged:
        times, one = (int(event["times"]), event["of"]) if event["event"] == "repeated" else (1, event)
        single, made, spread = _table(one, times)
        if one["event"] == "gaussian":  # (which composes to another one without any table)
            times = 1
        variance, widest = variance + times * spread**2, max(widest, single)
        own = single if times == 1 else _composed(times * spread**2, single)
        rows += (
            made + (own + _composed(variance, widest)) / 16
        )  # a row that is composed costs less than one that is made
        if times > 1 and made <= SPARSE:
            rows += 3e6 * (times * math.log2(made) / DIGITS) ** math.log2(3)
        if not rows <= CELLS:
            return False
    return True


def _composed(variance: float, single: float) -> float:
    """Rows of a composed table: a multiple of its deviation, but not less than its bounds can tell apart."""
    return max(SPREAD * math.sqrt(variance) / GRID, 7 * single)


def _table(one: Event, times: int) -> tuple[float, float, float]:
    """Rows from end to end, how many of them are computed one by one, and the deviation of the loss (at most about)."""
    if one["event"] == "gaussian":
        noise = float(one["noise_multiplier"]) / math.sqrt(max(times, 1))
        rows = (2 * REACH / noise + 1 / noise**2) / GRID + 3
        return rows, rows, 1 / noise
    if one["event"] == "sampled" and one["of"]["event"] == "gaussian":
        noise, rate = float(one["of"]["noise_multiplier"]), float(one["rate"])
        far = REACH / noise + 1 / noise**2
        highest = (
            math.log1p(rate * math.expm1(far)) if far < 700 else max(0.0, far + math.log(rate or 1e-300))
        )
        width = highest - (math.log1p(rate * math.expm1(-far)) if rate < 1 else -far)
        deviation = min(rate * math.sqrt(math.expm1(min(1 / noise**2, 700))), width / 2)
        return width / GRID + 3, width / GRID + 3, deviation
    if one["event"] == "pure":
        epsilon = float(one["epsilon"])
        return 2 * epsilon / GRID + 4, 4, epsilon
    return 0.0, 1.0, 0.0
