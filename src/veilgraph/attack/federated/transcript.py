"""The federation's messages, written down for attackers: each attacker's file holds what that attacker sees, and no more.

server/round-N      the victim's shared rows as they came in, and as they had been sent to it
client/round-N      the targets as the attacking client sees them, three rows each (head, relation, tail): with the shared rows it received,
                    with those it sent, with what the other holders must have sent the round before, and, for collusion where
                    rows are not entities', with those the victim sent last. With entities shared the relation is the attacker's own,
                    with relations shared the ends are; bases make entity rows.
idle.json           clients that take no step and send nothing
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Message

from veilgraph.attack.federated.base import IDLE
from veilgraph.attack.federated.targets import Targets
from veilgraph.federate import messages
from veilgraph.federate.client_app import LARGEST, app, kept
from veilgraph.federate.member import Member
from veilgraph.federate.messages import pack
from veilgraph.federate.strategies import strategy
from veilgraph.files import write_arrays, write_json

TRANSCRIPT = "transcript"


class Listener:
    """In the place of the clients' app, in one process: passes everything on, and writes down what attackers see.

    ``active``: in every ``every``-th round the attacker sends reversed what the targets hang on (their tails' rows; their relations'
    where relations are shared; all bases).
    """

    def __init__(self, folder: Path, targets: Targets, *, every: int, active: bool) -> None:
        self.folder, self.targets, self.every, self.active = folder / TRANSCRIPT, targets, every, active
        for name in ("server", "client"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folders: dict[str, str] = {}  # of clients, by name
        self.idle: set[str] = set()
        self.last: tuple[np.ndarray, np.ndarray] | None = None  # what the attacker received and sent last
        self.victims: np.ndarray | None = None  # what the victim sent last

    def __call__(self, message: Message, context: Any) -> Message:
        """Answer as the client would, or as the attacker does."""
        reply = app(message, context)
        name, kind = context.node_config["name"], message.metadata.message_type
        if kind == messages.HELLO and messages.facts(reply)["status"] == "here":
            self.folders[name] = str(context.node_config["folder"])
            self.idle |= {name} if messages.facts(reply)["idle"] else set()
            write_json(self.folder / IDLE, sorted(self.idle))
        if kind != messages.TRAIN or messages.facts(reply)["status"] != "trained":
            return reply
        number, rows = int(messages.facts(message)["round"]), messages.array(reply, "rows", LARGEST)
        if name == self.targets.victim:
            self.victims = rows
            if number % self.every == 0:
                seen = {"rows": rows, "sent": messages.array(message, "rows", LARGEST)}
                write_arrays(self.folder / "server" / f"round-{number:06d}.safetensors", seen)
        if name == self.targets.attacker:
            received = messages.array(message, "rows", LARGEST)
            rows = self._client(number, received, rows)
            return Message(pack({"rows": rows}, status="trained", round=number), reply_to=message)
        return reply

    def _client(self, number: int, received: np.ndarray, sent: np.ndarray) -> np.ndarray:
        member = self._member(self.targets.attacker)
        shares = strategy(member.terms.strategy)
        hostile = self.active and number % self.every == 0
        if hostile:
            sent = sent.copy()
            sent[self._hung_on(member)] *= -1
        views = {"received": received, "sent": sent}
        if self.last is not None and shares.aggregates:
            views["others"] = others(*self.last, received, self._holders(member), member.terms.server_step)
        if self.victims is not None and not shares.shares_entities:
            views["victim"] = self._swapped(member, received)
        seen = {"reversed": np.array([hostile], np.int64)}
        for name, rows in views.items():
            seen |= {f"{name}.{part}": found for part, found in self._targets(member, rows).items()}
        write_arrays(self.folder / "client" / f"round-{number:06d}.safetensors", seen)
        self.last = (received, sent)
        return sent

    def _member(self, name: str) -> Member:
        return kept[self.folders[name]]

    def _ids(self, member: Member) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The targets by the client's own numbers."""
        heads, relations, tails = zip(*self.targets.statements)
        entities = member.run.entities
        return entities.ids(heads), member.run.relations.ids(relations), entities.ids(tails)

    def _targets(self, member: Member, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Rows of the targets' heads, relations and tails, with these shared rows."""
        heads, relations, tails = self._ids(member)
        with member.wearing(rows) as p:
            return {
                "head": p.entities[heads].numpy(),
                "relation": p.relations[relations].numpy(),
                "tail": p.entities[tails].numpy(),
            }

    def _hung_on(self, member: Member) -> np.ndarray:
        """The shared rows that the targets hang on."""
        _, relations, tails = self._ids(member)
        shares = strategy(member.terms.strategy)
        if shares.of_encoder:
            return np.arange(len(member.order))
        return np.unique(member.places(tails if shares.shares_entities else relations))

    def _holders(self, member: Member) -> np.ndarray:
        """How many clients send each of the attacker's shared rows."""
        count = np.zeros(len(member.tokens), np.int64)
        for name in self.folders.keys() - self.idle:
            count += _among(member.tokens, self._member(name).tokens) >= 0
        return count

    def _swapped(self, member: Member, received: np.ndarray) -> np.ndarray:
        """What the attacker received, with the victim's own rows where it holds them."""
        at = _among(member.tokens, self._member(self.targets.victim).tokens)
        assert self.victims is not None
        return np.where((at >= 0)[:, None], self.victims[at], received)


def others(
    before: np.ndarray, own: np.ndarray, after: np.ndarray, holders: np.ndarray, step: float = 1.0
) -> np.ndarray:
    """The mean of the other holders' rows of a round, from what one received before and after it, and sent in it.

    The server went ``step`` of the way from what it had to the mean, which undoes itself. Zero where nobody else holds a row.
    """
    mean = before + (after.astype(np.float64) - before) / step
    count = holders[:, None]
    return np.where(count > 1, (count * mean - own) / np.maximum(count - 1, 1), 0).astype(np.float32)


def _among(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Where each of my tokens is among theirs; −1 where it is not."""
    places = {token.tobytes(): place for place, token in enumerate(theirs)}
    return np.array([places.get(token.tobytes(), -1) for token in mine])
