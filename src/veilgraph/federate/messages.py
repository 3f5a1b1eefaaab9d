"""What goes over the wire, as Flower's records; everything that comes in is measured before it is unpacked."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

HELLO, TRAIN, VALIDATE, FINISH = "query.hello", "train", "evaluate", "query.finish"
SLACK = 1024  # bytes an array's header may have


class Unreadable(Exception):
    """Not a message of ours."""


def pack(arrays: dict[str, np.ndarray], **facts: Any) -> RecordDict:
    """Arrays and facts as one message's content."""
    made = {name: Array(np.ascontiguousarray(array)) for name, array in arrays.items()}
    return RecordDict({"arrays": ArrayRecord(made), "facts": ConfigRecord(facts)})


def facts(message: Message) -> dict[str, Any]:
    """What a message says beside its arrays."""
    record = message.content.get("facts") if message.has_content() else None
    if not isinstance(record, ConfigRecord):
        raise Unreadable("it holds no facts")
    return dict(record)


def array(message: Message, name: str, most: int) -> np.ndarray:
    """One array of at most so many bytes; nothing larger is unpacked, and nothing is unpickled."""
    record = message.content.get("arrays") if message.has_content() else None
    if not isinstance(record, ArrayRecord) or name not in record:
        raise Unreadable(f"it holds no {name}")
    found = record[name]
    if len(found.data) > most + SLACK:
        raise Unreadable(f"{name} has {len(found.data):,} bytes, at most {most:,} were expected")
    try:
        return np.asarray(found.numpy())
    except Exception as error:
        raise Unreadable(f"{name} cannot be read ({type(error).__name__})") from None
