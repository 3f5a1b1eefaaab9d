"""Who may ask, and how often: keys by their hashes, and a bucket of requests for each."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from veilgraph.serve.desk import Desk
from veilgraph.serve.store import digest_of

FRESH = 2.0  # seconds for which keys that were read are believed


@dataclass(frozen=True)
class Client:
    """Somebody with a key."""

    name: str
    role: str

    @property
    def curator(self) -> bool:
        """May see originals."""
        return self.role == "curator"


@dataclass
class Doorkeeper:
    """Keys are read from the store again every few seconds, so one that is removed soon opens nothing."""

    desk: Desk
    rate: float  # requests a second, for each key
    keys: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    read: float = -math.inf
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    left: dict[str, tuple[float, float]] = field(default_factory=dict)  # by key: requests left, when that was

    async def client(self, key: str) -> Client | None:
        """Whose key it is, if it is one."""
        if time.monotonic() - self.read > FRESH:
            async with self.reading:
                if time.monotonic() - self.read > FRESH:
                    self.keys = await self.desk.call(self.desk.service.store.keys)
                    self.read = time.monotonic()
        found = self.keys.get(digest_of(key))
        return Client(*found) if found else None

    def allows(self, client: Client) -> bool:
        """Whether another request is within the rate; a second's worth may come at once."""
        now = time.monotonic()
        left, then = self.left.get(client.name, (self.rate, now))
        left = min(max(self.rate, 1.0), left + (now - then) * self.rate)
        allowed = left >= 1
        self.left[client.name] = (left - 1 if allowed else left, now)
        return allowed
