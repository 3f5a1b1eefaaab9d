"""The rounds: who is asked, what comes back, what is refused, on any Flower grid."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid

from veilgraph.errors import InputError
from veilgraph.federate import messages
from veilgraph.federate.coordinator import Coordinator, Refused, check_tokens, most_rows, nothing_sent
from veilgraph.federate.messages import Unreadable, pack
from veilgraph.federate.names import WIDTH
from veilgraph.federate.terms import Terms
from veilgraph.limits import limit

LOOK = 1.0  # seconds between looks for clients
FIGURES = ("mrr.fede", "mrr.shared")  # what a client may say at the end


@dataclass(frozen=True)
class Progress:
    """How a federation is doing, after a round."""

    round: int
    rounds: int
    came: int
    clients: int
    mrr: float | None
    seconds_left: float


@dataclass
class Server:
    """One federation, from the first hello to the last vectors."""

    grid: Grid
    terms: Terms
    folder: Path
    clients: int  # how many to wait for
    patience: float | None = None  # seconds for a client to answer in a round
    waiting: float = 3600.0  # seconds for clients to come
    listener: Callable[[Progress], None] | None = None
    tell: Callable[[str], None] | None = None  # is told, before the first round, who sends nothing
    allowed: set[int] | None = None  # nodes that may have a seat; None: any
    seats: dict[int, str] = field(default_factory=dict)  # names by node
    idle: set[str] = field(default_factory=set)  # who has nothing to send
    refused: dict[str, str] = field(default_factory=dict)  # in this round: who, why
    told: dict[str, dict[str, Any]] = field(default_factory=dict)  # what clients said at the end

    def run(self) -> Coordinator:
        """All rounds that are left, then the end. Continues after a crash."""
        coordinator = Coordinator.resume(self.terms, self.folder)
        coordinator = self._begin(coordinator)
        words = nothing_sent(coordinator.idle, len(coordinator.seats))
        if words is not None and self.tell is not None:
            self.tell(words)
        began, first = time.perf_counter(), coordinator.round
        while coordinator.round < self.terms.rounds and coordinator.expected:
            self._round(coordinator)
            done = coordinator.round - first
            left = (time.perf_counter() - began) / done * (self.terms.rounds - coordinator.round)
            if self.listener is not None:
                count = len(coordinator.seats)
                self.listener(
                    Progress(coordinator.round, self.terms.rounds, self.came, count, self.mrr, left)
                )
        self._finish(coordinator)
        return coordinator

    came: int = 0  # in the last round
    mrr: float | None = None  # at the last validation

    # --- joining --------------------------------------------------------------------------------------------------
    def _begin(self, coordinator: Coordinator | None) -> Coordinator:
        wanted = len(coordinator.seats) if coordinator is not None else self.clients
        ends, joined = time.monotonic() + self.waiting, dict[str, np.ndarray]()
        while len(joined) < wanted:
            for name, tokens in self._greet(coordinator).items():
                joined[name] = tokens
            if len(joined) >= wanted or (coordinator is not None and joined):
                break
            if time.monotonic() > ends:
                reasons = "".join(f" {name}: {why}." for name, why in self.refused.items())
                raise InputError(f"{len(joined)} of {wanted} clients came in {self.waiting:g} s.{reasons}")
            time.sleep(LOOK)
        if coordinator is None:
            nodes = {name: node for node, name in self.seats.items()}
            members = dict(sorted(joined.items()))
            coordinator = Coordinator.begin(self.terms, self.folder, members, nodes, self.idle)
        return coordinator

    def _greet(self, coordinator: Coordinator | None) -> dict[str, np.ndarray]:
        """Say hello to nodes that have no seat yet; tokens of those that may have one."""
        new = [node for node in self.grid.get_node_ids() if node not in self.seats]
        new = [node for node in new if self.allowed is None or node in self.allowed]
        found: dict[str, np.ndarray] = {}
        for node, reply in self._ask(
            new, messages.HELLO, "0", {n: pack({}, terms=self.terms.text()) for n in new}
        ):
            try:
                name, tokens, idle = self._here(reply)
                if name in self.seats.values() and coordinator is None:
                    raise Refused("another client has that name")
                if coordinator is not None:
                    coordinator.check_again(name, tokens, node)
                self.seats = {n: seat for n, seat in self.seats.items() if seat != name} | {node: name}
                found[name] = tokens
                self.idle = self.idle | {name} if idle else self.idle - {name}
            except (Refused, Unreadable) as error:
                self.refused[f"node {node}"] = str(error)
        return found

    def _here(self, reply: Message) -> tuple[str, np.ndarray, bool]:
        said = self._facts(reply, "here")
        most = most_rows(self.terms)
        tokens, name = messages.array(reply, "tokens", limit("rows") * WIDTH), str(said.get("name"))
        check_tokens(name, tokens, most)
        return name, tokens, said.get("idle") is True

    # --- rounds ---------------------------------------------------------------------------------------------------
    def _round(self, coordinator: Coordinator) -> None:
        began, number, self.refused = time.perf_counter(), coordinator.round + 1, {}
        if len(self.seats) < len(coordinator.seats):
            self._greet(coordinator)  # somebody who was lost may be back
        active = {seat.name for seat in coordinator.expected}
        nodes = [node for node, name in self.seats.items() if name in active]
        contents = {
            node: pack({"rows": coordinator.rows_of(self.seats[node])}, round=number) for node in nodes
        }
        lost = set(active)
        for node, reply in self._ask(nodes, messages.TRAIN, str(number), contents):
            name = self.seats[node]
            lost.discard(name)
            try:
                said = self._facts(reply, "trained", "spent")
                if said["status"] == "spent":
                    coordinator.seats[name].active = False
                    continue
                largest = 4 * coordinator.table.shape[1] * len(coordinator.seats[name].places)
                coordinator.accept(name, _whole(said.get("round")), messages.array(reply, "rows", largest))
            except (Refused, Unreadable) as error:
                self.refused[name] = str(error)
        self.seats = {node: name for node, name in self.seats.items() if name not in lost}
        self.came = sum(seat.sent is not None for seat in coordinator.seats.values())
        spent = [seat.name for seat in coordinator.seats.values() if not seat.active]
        facts = {"refused": self.refused, "lost": sorted(lost), "spent": spent}
        coordinator.close_round(**facts, seconds=round(time.perf_counter() - began, 3))
        every = self.terms.validate_every
        if every and (coordinator.round % every == 0 or coordinator.round == self.terms.rounds):
            self._validate(coordinator)

    def _contents(self, coordinator: Coordinator) -> dict[int, Any]:
        made = {}
        for node, name in self.seats.items():
            arrays, others = {"rows": coordinator.rows_of(name)}, coordinator.others_of(name)
            made[node] = pack(
                arrays | ({} if others is None else {"others": others}), others=others is not None
            )
        return made

    def _validate(self, coordinator: Coordinator) -> None:
        said = []
        contents = self._contents(coordinator)
        for _, reply in self._ask(list(contents), messages.VALIDATE, str(coordinator.round), contents):
            try:
                facts = self._facts(reply, "validated")
                if "mrr" in facts:
                    said.append((float(facts["mrr"]), float(facts["queries"])))
            except (Refused, Unreadable, KeyError, TypeError, ValueError, OverflowError):
                continue
        said = [(mrr, count) for mrr, count in said if 0 <= mrr <= 1 and 0 < count < 1e9]
        if said:
            self.mrr = sum(mrr * count for mrr, count in said) / sum(count for _, count in said)

    def _finish(self, coordinator: Coordinator) -> None:
        contents = self._contents(coordinator)
        for node, reply in self._ask(list(contents), messages.FINISH, "end", contents):
            try:
                said = self._facts(reply, "finished")
                figures = {key: said[key] for key in FIGURES if _share(said.get(key))}
                self.told[self.seats[node]] = {"status": "finished", **figures}
            except (Refused, Unreadable) as error:
                self.refused[self.seats[node]] = str(error)

    # --- messages -------------------------------------------------------------------------------------------------
    def _ask(
        self, nodes: list[int], kind: str, group: str, contents: dict[int, Any]
    ) -> Iterable[tuple[int, Message]]:
        """Replies by node, as they come; at most one from each node that was asked."""
        sent = [
            Message(contents[node], dst_node_id=node, message_type=kind, group_id=group) for node in nodes
        ]
        left = set(nodes)
        for reply in self.grid.send_and_receive(sent, timeout=self.patience) if sent else ():
            node = reply.metadata.src_node_id
            if node in left:
                left.discard(node)
                yield node, reply

    def _facts(self, reply: Message, *wanted: str) -> dict[str, Any]:
        if reply.has_error():
            raise Refused(f"it failed (code {reply.error.code})")
        said = messages.facts(reply)
        if said.get("status") not in wanted:
            reason = said.get("reason")
            known = (
                isinstance(reason, str) and len(reason) <= 64 and reason.isascii() and reason.isidentifier()
            )
            raise Refused(f"it failed ({reason})" if known else "it failed")
        return said


def _share(value: object) -> bool:
    return isinstance(value, float) and 0 <= value <= 1


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unreadable("its round is no number")
    return value
