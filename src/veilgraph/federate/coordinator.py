"""The server without any network: whose rows are whose, what is refused, what is averaged, and how it goes on after a crash.

It knows tokens, rows and the terms. It is not trusted: nothing here is needed for what a client promises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from veilgraph import machine
from veilgraph.config import TrainConfig
from veilgraph.errors import InputError, RunError
from veilgraph.federate.names import WIDTH
from veilgraph.federate.strategies import strategy
from veilgraph.federate.terms import LARGEST, Terms
from veilgraph.files import append_line, read_arrays, write_arrays, write_json
from veilgraph.limits import VARIABLE, is_chosen, limit
from veilgraph.rng import Streams

STATE, SEATS, TRACE = "state.safetensors", "federation.json", "trace.jsonl"
SHARE = 8  # one client may take such a part of the server's memory
ROWS_TOGETHER = 1 << 14  # trimmed at a time


class Refused(Exception):
    """What a client sent is not used, and why."""


@dataclass
class Seat:
    """A client's place: which rows of the table it holds."""

    name: str
    places: np.ndarray  # [rows] in the table
    active: bool = True  # it still trains
    idle: bool = False  # it never does, and has nothing to send: by public settings
    node: int | None = None  # whose it is
    sent: np.ndarray | None = None  # in this round
    returned: np.ndarray | None = None  # its last rows, where nothing is shared


@dataclass
class Coordinator:
    """The shared table and the clients that hold its rows."""

    terms: Terms
    folder: Path
    seats: dict[str, Seat] = field(default_factory=dict)
    tokens: np.ndarray = field(default_factory=lambda: np.empty((0, WIDTH), np.uint8))
    table: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    first: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    round: int = 0  # rounds that are over

    # --- who is there --------------------------------------------------------------------------------------------
    @classmethod
    def begin(
        cls,
        terms: Terms,
        folder: Path,
        members: dict[str, np.ndarray],
        nodes: dict[str, int] | None = None,
        idle: Collection[str] = (),
    ) -> Coordinator:
        """A new federation of these clients, by the tokens of their rows; ``nodes`` says whose each name is.

        Clients that are ``idle`` take no step: they are neither asked nor averaged in, where their rows would pull those of others to
        where nothing was learnt.
        """
        if not members:
            raise InputError("no client has joined.")
        most = most_rows(terms)
        for name, own in members.items():
            check_tokens(name, own, most)
        together, place = np.unique(np.concatenate(list(members.values())), axis=0, return_inverse=True)
        ends = np.cumsum([len(own) for own in members.values()])
        places = np.split(place.ravel(), ends[:-1])
        seats = {
            name: Seat(name, at, name not in idle, name in idle, (nodes or {}).get(name))
            for name, at in zip(members, places)
        }
        made = cls(terms, folder, seats, together)
        made.table = made.first = initial_rows(terms, len(together))
        made.save()
        return made

    @classmethod
    def resume(cls, terms: Terms, folder: Path) -> Coordinator | None:
        """As it was after its last whole round; None if there was none."""
        if not (folder / SEATS).exists():
            return None
        try:
            about = json.loads((folder / SEATS).read_text(encoding="utf-8"))
            arrays = read_arrays(folder / STATE)[0]
            if about["terms"] != terms.text():
                raise RunError(f"{folder} belongs to a federation on other terms. Choose another --out.")
            names = list(about["active"])
            seats = {
                name: Seat(
                    name,
                    arrays[f"places.{name}"],
                    about["active"][name],
                    name in about.get("idle", ()),
                    about["nodes"][name],
                    returned=arrays.get(f"returned.{name}"),
                )
                for name in names
            }
            return cls(
                terms, folder, seats, arrays["tokens"], arrays["table"], arrays["first"], int(about["round"])
            )
        except (OSError, ValueError, KeyError) as error:
            raise RunError(f"{folder} cannot be read as a federation: {error}.") from None

    def check_again(self, name: str, own: np.ndarray, node: int | None = None) -> None:
        """A client that comes back must be the same node, and hold what it held."""
        seat = self.seats.get(name)
        if seat is None:
            raise Refused("it was not there when the federation began")
        if seat.node is not None and seat.node != node:
            raise Refused("that name is another node's")
        if own.shape != (len(seat.places), WIDTH) or not np.array_equal(self.tokens[seat.places], own):
            raise Refused("it holds other rows than when the federation began")

    def save(self) -> None:
        """One file for the rows and, after it, one that says which round they are of."""
        arrays = {"tokens": self.tokens, "table": self.table, "first": self.first}
        for name, seat in self.seats.items():
            arrays[f"places.{name}"] = seat.places
            if seat.returned is not None:
                arrays[f"returned.{name}"] = seat.returned
        self.folder.mkdir(parents=True, exist_ok=True)
        write_arrays(self.folder / STATE, arrays)
        active = {name: seat.active for name, seat in self.seats.items()}
        nodes = {name: seat.node for name, seat in self.seats.items()}
        about = {
            "terms": self.terms.text(),
            "round": self.round,
            "active": active,
            "idle": self.idle,
            "nodes": nodes,
        }
        write_json(self.folder / SEATS, about)

    # --- a round --------------------------------------------------------------------------------------------------
    @property
    def expected(self) -> list[Seat]:
        """Who is asked to train."""
        return [seat for seat in self.seats.values() if seat.active]

    @property
    def idle(self) -> list[str]:
        """Who sends nothing, from the beginning."""
        return [seat.name for seat in self.seats.values() if seat.idle]

    def rows_of(self, name: str) -> np.ndarray:
        """What a client gets: its rows of the table."""
        seat = self.seats[name]
        if not strategy(self.terms.strategy).aggregates and seat.returned is not None:
            return seat.returned
        return np.ascontiguousarray(self.table[seat.places])

    def others_of(self, name: str) -> np.ndarray | None:
        """The rows of entities that are not a client's, where entities are shared."""
        if not strategy(self.terms.strategy).shares_entities:
            return None
        mine = np.zeros(len(self.table), bool)
        mine[self.seats[name].places] = True
        source = self.table if strategy(self.terms.strategy).aggregates else self.first
        return np.ascontiguousarray(source[~mine])

    def accept(self, name: str, number: int, rows: np.ndarray) -> None:
        """Take what a client sent for this round, or say why not."""
        seat = self.seats.get(name)
        if seat is None:
            raise Refused("it is not a client of this federation")
        if number != self.round + 1:
            raise Refused(f"it is of round {number}, this is round {self.round + 1}")
        if seat.sent is not None:
            raise Refused("it sent rows for this round before")
        wanted = (len(seat.places), self.table.shape[1])
        if rows.shape != wanted or rows.dtype != np.float32:
            raise Refused(f"rows are {rows.dtype} {rows.shape}, not float32 {wanted}")
        if not np.isfinite(rows).all():
            raise Refused("some rows are no numbers")
        if rows.size and float(np.abs(rows).max()) > LARGEST:
            raise Refused(f"some numbers are beyond {LARGEST:g}")
        seat.sent = rows

    def close_round(self, **facts: object) -> None:
        """Average what came; rows nobody sent stay as they were. On disk when it returns."""
        came = [seat for seat in self.seats.values() if seat.sent is not None]
        if strategy(self.terms.strategy).aggregates and came:
            combine = mean if self.terms.aggregate == "mean" else trimmed
            found = combine(self.table, [(seat.places, seat.sent) for seat in came if seat.sent is not None])
            step = np.float32(self.terms.server_step)
            self.table = found if step == 1 else self.table + step * (found - self.table)
        for seat in came:
            if not strategy(self.terms.strategy).aggregates:
                seat.returned = seat.sent
            seat.sent = None
        self.round += 1
        self.save()
        append_line(self.folder / TRACE, {"round": self.round, "came": [seat.name for seat in came], **facts})


def nothing_sent(idle: Collection[str], clients: int) -> str | None:
    """What is said before the first round about clients that take no step; None if all do."""
    if not idle:
        return None
    how = (
        "takes no step: its promise is kept by noisy counts alone, which stay with it. To learn from others under a promise, "
        "let clients take steps (--defence dpsgd or adafest), or leave some statements unrestricted."
    )
    if len(idle) == clients:
        return f"Nothing is exchanged, and no round is run: every client {how}"
    return f"{', '.join(idle)}: sends nothing and is not averaged in, because it {how}"


def most_rows(terms: Terms) -> int:
    """How many rows one client may bring: a few bytes of tokens each, which the server turns into rows of a table."""
    row = (
        8 * initial_rows(terms, 1).shape[1] + 6 * WIDTH
    )  # bytes: the table and what is made of it, tokens and their order
    held = limit("rows")
    return held if is_chosen("rows") else max(1, min(held, machine.memory() // SHARE // row))


def check_tokens(name: str, own: np.ndarray, most: int) -> None:
    """Raise for what no honest client would send when it joins."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise Refused("a client's name has 1 to 100 letters, digits, dots, dashes and underscores")
    if own.dtype != np.uint8 or own.ndim != 2 or own.shape[1] != WIDTH or not len(own):
        raise Refused(f"tokens are {own.dtype} {own.shape}, not uint8 (rows, {WIDTH})")
    if len(own) > most:
        raise Refused(
            f"it brings {len(own):,} rows, and one client may bring {most:,} (what an eighth of the server's memory holds); more with "
            f"{VARIABLE}=rows={len(own)}, set for the server"
        )
    if len(np.unique(own, axis=0)) != len(own):
        raise Refused("a row was named twice")


def initial_rows(terms: Terms, count: int) -> np.ndarray:
    """The first rows, from the federation's seed."""
    config = TrainConfig.of({**terms.training, **terms.shape})
    return strategy(terms.strategy).first_rows(config, count, Streams(terms.seed).numpy("init"))


Came = list[tuple[np.ndarray, np.ndarray]]  # places, rows


def mean(table: np.ndarray, came: Came) -> np.ndarray:
    """Every row the mean over the clients that sent it."""
    total, count = np.zeros(table.shape, np.float64), np.zeros(len(table))
    for places, rows in came:
        total[places] += rows
        count[places] += 1
    there = count > 0
    out = table.copy()
    out[there] = (total[there] / count[there, None]).astype(np.float32)
    return out


def trimmed(table: np.ndarray, came: Came) -> np.ndarray:
    """The same without the lowest and the highest number of each cell, where three clients or more sent the row.

    One client then moves no cell further than the others span. It does not help where one or two hold a row.
    """
    out = mean(table, came)
    where = np.full((len(came), len(table)), -1)
    for number, (places, _) in enumerate(came):
        where[number, places] = np.arange(len(places))
    many = np.flatnonzero((where >= 0).sum(0) >= 3)
    for start in range(0, len(many), ROWS_TOGETHER):
        part = many[start : start + ROWS_TOGETHER]
        stack = np.full((len(came), len(part), table.shape[1]), np.nan)
        for number, (_, rows) in enumerate(came):
            held = where[number, part] >= 0
            stack[number, held] = rows[where[number, part[held]]]
        low, high, total = np.nanmin(stack, 0), np.nanmax(stack, 0), np.nansum(stack, 0)
        count = (where[:, part] >= 0).sum(0)[:, None]
        out[part] = ((total - low - high) / (count - 2)).astype(np.float32)
    return out
