"""The federation's messages, written down for attackers: each attacker's file holds what that attacker sees, and no more.

server/round-N      the victim's rows as they came in, and as they had been sent to it
client/round-N      the attacking client's: what it received and sent (rows of the targets), and its own relations
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Message

from veilgraph.attack.federated.targets import Targets
from veilgraph.federate import messages
from veilgraph.federate.client_app import LARGEST, app, kept
from veilgraph.federate.messages import pack
from veilgraph.files import write_arrays

TRANSCRIPT = "transcript"


class Listener:
    """In the place of the clients' app, in one process: passes everything on, and writes down what attackers see.

    ``active``: in every ``every``-th round the attacker sends the rows of the targets' tails reversed.
    """

    def __init__(self, folder: Path, targets: Targets, *, every: int, active: bool) -> None:
        self.folder, self.targets, self.every, self.active = folder / TRANSCRIPT, targets, every, active
        for name in ("server", "client"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def __call__(self, message: Message, context: Any) -> Message:
        """Answer as the client would, or as the attacker does."""
        reply = app(message, context)
        name = context.node_config["name"]
        if message.metadata.message_type != messages.TRAIN or messages.facts(reply)["status"] != "trained":
            return reply
        number, rows = int(messages.facts(message)["round"]), messages.array(reply, "rows", LARGEST)
        if name == self.targets.victim and number % self.every == 0:
            seen = {"rows": rows, "sent": messages.array(message, "rows", LARGEST)}
            write_arrays(self.folder / "server" / f"round-{number:06d}.safetensors", seen)
        if name == self.targets.attacker:
            received = messages.array(message, "rows", LARGEST)
            rows = self._client(number, str(context.node_config["folder"]), received, rows)
            return Message(pack({"rows": rows}, status="trained", round=number), reply_to=message)
        return reply

    def _client(self, number: int, folder: str, received: np.ndarray, sent: np.ndarray) -> np.ndarray:
        member = kept[folder]
        vocabulary = member.run.entities
        heads = member.places(vocabulary.ids(head for head, _, _ in self.targets.statements))
        tails = member.places(vocabulary.ids(tail for _, _, tail in self.targets.statements))
        hostile = self.active and number % self.every == 0
        if hostile:
            sent = sent.copy()
            sent[np.unique(tails)] *= -1
        seen = {
            "reversed": np.array([hostile], np.int64),
            "received.head": received[heads],
            "received.tail": received[tails],
            "sent.head": sent[heads],
            "sent.tail": sent[tails],
            "relations": member.session.state.parameters.relations.numpy().copy(),
        }
        write_arrays(self.folder / "client" / f"round-{number:06d}.safetensors", seen)
        return sent
