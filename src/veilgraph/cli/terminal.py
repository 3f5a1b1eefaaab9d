"""What the commands show: tables on stdout, progress on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from veilgraph.account.statement import rounded_up
from veilgraph.cli.shown import visible

PROMISED = (
    "epsilon",
    "epsilon_claimed",
    "epsilon_by_rdp",
    "attack_accuracy",
    "mu",
)  # shown larger, never smaller


class _Console(Console):
    """Shows what strangers wrote as it is written, and obeys none of it."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(visible(one) if isinstance(one, str) else one for one in objects), **options)


out = _Console(highlight=False, soft_wrap=True)
err = _Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """One line on stderr."""
    err.print(text, markup=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """A table on stdout."""
    grid = Table(title=title, title_justify="left", header_style="bold")
    cells = [[visible(_text(value), line=True) for value in row] for row in rows]
    for i, column in enumerate(columns):
        words = any(row[i][:1].isalpha() for row in cells)
        grid.add_column(
            Text(visible(column)), justify="left" if i == 0 or words else "right", overflow="fold"
        )
    for row in cells:
        grid.add_row(*map(Text, row))
    out.print(grid)


def facts(pairs: dict[str, Any], title: str | None = None) -> None:
    """Names and values, one per line."""
    if title:
        out.print(title, style="bold", markup=False)
    width = max((len(name) for name in pairs), default=0)
    for name, value in pairs.items():
        if name in PROMISED and isinstance(value, float):
            value = rounded_up(value, 4)
        out.print(f"  {name:<{width}}  {_text(value)}", markup=False)


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "—"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if 0 < abs(value) < 1e-3:
            return f"{value:.3g}"
        return f"{value:,.4f}" if abs(value) < 10 else f"{value:,.1f}"
    return visible(str(value))


class TrainingProgress:
    """Epoch, loss, validation MRR, ε so far and time left: a live line on a terminal, a line now and then elsewhere."""

    def __init__(self, every: float = 10.0) -> None:
        self.live = sys.stderr.isatty()
        self.every, self.told, self.ended = every, time.perf_counter(), True

    def __call__(self, progress: Any) -> None:
        now = time.perf_counter()
        last = progress.epoch == progress.epochs and progress.step == progress.steps
        if not self.live and now - self.told < self.every and not last:
            return
        self.told, self.ended = now, last
        of = "" if progress.judged == "all statements" else f" of {progress.judged}"
        mrr = f" · validation MRR{of} {progress.mrr:.4f}" if progress.mrr is not None else ""
        spent = f" · ε {rounded_up(progress.epsilon, 3)}" if progress.epsilon is not None else ""
        loss = f" · loss {progress.loss:.4f}" if progress.loss is not None else ""
        part = f"epoch {progress.epoch}/{progress.epochs}" if loss or progress.epochs > 1 else "private steps"
        line = (
            f"{part} {100 * progress.step // max(progress.steps, 1):3d} %"
            f"{loss}{mrr}{spent} · {progress.positives_per_second:,.0f} statements/s"
            f" · at most {_duration(progress.seconds_left)} left"
        )
        if self.live:
            sys.stderr.write("\r\x1b[K" + line[: err.width - 1] + ("\n" if last else ""))
            sys.stderr.flush()
        else:
            note(line)

    def close(self) -> None:
        """End the live line, if the last one did not end by itself."""
        if self.live and not self.ended:
            sys.stderr.write("\n")


class EpochProgress:
    """A line now and then: epoch, loss, time left."""

    def __init__(self, every: float = 5.0) -> None:
        self.every, self.began, self.told = every, time.perf_counter(), time.perf_counter()

    def __call__(self, epoch: int, epochs: int, loss: float) -> None:
        now = time.perf_counter()
        if epoch == 1:
            self.began = now
        if now - self.told > self.every:
            self.told = now
            left = (now - self.began) / max(epoch - 1, 1) * (epochs - epoch)
            note(f"epoch {epoch}/{epochs} · loss {loss:.4f} · {_duration(left)} left")


class RankingProgress:
    """How many queries are ranked, every few seconds."""

    def __init__(self, every: float = 5.0) -> None:
        self.every, self.told, self.done = every, time.perf_counter(), 0

    def __call__(self, queries: int) -> None:
        self.done += queries
        now = time.perf_counter()
        if now - self.told > self.every:
            self.told = now
            note(f"{self.done:,} queries ranked so far")


class RoundProgress:
    """A line now and then while rounds go on."""

    def __init__(self, every: float = 5.0) -> None:
        self.every, self.told = every, 0.0

    def __call__(self, progress: Any) -> None:
        mrr = f", validation MRR {progress.mrr:.3f}" if progress.mrr is not None else ""
        left = f", {_duration(progress.seconds_left)} left" if progress.round < progress.rounds else ""
        self.line(
            progress.round, progress.rounds, f"{progress.came} of {progress.clients} clients{mrr}{left}"
        )

    def line(self, number: int, of: int, text: str) -> None:
        now = time.monotonic()
        if now - self.told > self.every or number == of:
            self.told = now
            note(f"round {number} of {of}: {text}")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
