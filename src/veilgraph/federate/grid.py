"""A Flower grid in one process: messages go to the very app that runs between machines, one client after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

SERVER = 1  # the node that Flower's servers are


class LocalGrid(Grid):
    """Clients by number; each has the configuration a node would have."""

    def __init__(self, app: ClientApp, nodes: list[dict[str, Any]]) -> None:
        self.app = app
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = (
            1,
            1,
            SERVER,
        )  # as Flower's processes do
        self.contexts = {
            number: Context(1, number, {**node, "together": True}, RecordDict(), {})
            for number, node in enumerate(nodes, SERVER + 1)
        }
        self.replies: dict[str, Message] = {}

    def set_run(self, run: Any) -> None:
        """There is one run."""

    @property
    def run(self) -> Any:
        """There is one run."""
        raise NotImplementedError

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """A message to a client."""
        return Message(
            content, dst_node_id=dst_node_id, message_type=message_type, group_id=group_id, ttl=ttl
        )

    def get_node_ids(self) -> Iterable[int]:
        """All clients."""
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Have them answered."""
        out = []
        for message in messages:
            node = message.metadata.dst_node_id
            reply = self.app(message, self.contexts[node])
            name = f"{node} {message.metadata.group_id} {message.metadata.message_type}"
            self.replies[name] = reply
            out.append(name)
        return out

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """What was answered."""
        return [self.replies.pop(name) for name in message_ids if name in self.replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Each is answered when its reply is asked for: one client's tables are on the way at a time."""
        for message in messages:
            yield from self.pull_messages(self.push_messages([message]))
