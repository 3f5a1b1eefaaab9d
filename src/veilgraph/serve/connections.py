"""Connections that say nothing, or are too many of one address, must not keep others waiting.

The server's own protocol with two limits more: so many connections of one address, and so many seconds until a request's headers are
there (again and again on a connection that is kept open). Bodies and answers have limits of their own (``guard``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Protocol
except ImportError:  # (a machine without the compiled parser)
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Protocol  # type: ignore[assignment]

if TYPE_CHECKING:
    from asyncio import TimerHandle

HEADERS = 10.0  # seconds for the headers of a request
LARGEST = 1 << 16  # bytes of a request, its headers included: the guard allows bodies of 4 KB


def patient(most: int, seconds: float = HEADERS) -> type[asyncio.Protocol]:
    """A protocol for one server: at most so many connections of one address."""
    there: Counter[str] = Counter()

    class Patient(_Protocol):
        """One connection."""

        waiting: TimerHandle | None = None
        address: str | None = None  # that is counted
        refused = False
        taken = 0  # bytes since the last answer

        def connection_made(self, transport: Any) -> None:
            peer = transport.get_extra_info("peername")
            address = str(peer[0]) if peer else ""
            if there[address] >= most:
                self.refused = True
                transport.abort()
                return
            there[address] += 1
            self.address = address
            super().connection_made(transport)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._enough()
            if self.refused:
                return
            if self.address is not None:
                there[self.address] -= 1
                if not there[self.address]:
                    del there[self.address]
                self.address = None
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            self.taken += len(data)
            if self.refused:
                return
            if self.taken > LARGEST:
                self.transport.abort()
                return
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._enough()
            elif self.waiting is None:
                self._wait()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.taken = 0
            self._enough()  # (from here the server's own limit of idle connections counts)

        def _wait(self) -> None:
            self.waiting = self.loop.call_later(seconds, self.transport.abort)

        def _enough(self) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None

    return Patient
