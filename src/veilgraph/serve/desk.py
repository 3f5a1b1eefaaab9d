"""The desk: requests that arrive together are answered together, by one thread that owns the model and the store."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from veilgraph.errors import VeilError
from veilgraph.serve.service import Service
from veilgraph.serve.store import Settled

TOGETHER = 32  # most requests answered at a time
WAITING = 512  # most requests that wait
READY = 1.0  # seconds between two looks at the store


Waiting = tuple[tuple[str, int, str], "asyncio.Future[Settled]"]


class Busy(Exception):
    """Too many requests wait already."""


class Desk:
    """One matrix product, one pass of the sanitisers and one durable transaction for all who wait."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.thread = ThreadPoolExecutor(1, "desk")
        self.waiting: list[Waiting] = []
        self.work: asyncio.Task[None] | None = None
        self.looked = -math.inf  # when the store was last looked at
        self.found: VeilError | None = None  # and what was wrong

    async def recommend(self, user: str, draw: int, key: str = "") -> Settled:
        """A list, charged and stored; ``key`` is the name of whose key asked."""
        if len(self.waiting) >= WAITING:
            raise Busy
        answer: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
        self.waiting.append(((user, draw, key), answer))
        if self.work is None or self.work.done():
            self.work = asyncio.create_task(self._serve())
        return await answer

    async def call(self, function: Callable[..., Any], *values: Any, **named: Any) -> Any:
        """Anything else that touches the model or the store."""
        return await asyncio.get_running_loop().run_in_executor(
            self.thread, lambda: function(*values, **named)
        )

    async def ready(self) -> None:
        """Raise where the store does not answer; asked once a second at most, whoever asks."""
        if time.monotonic() - self.looked > READY:
            self.looked, self.found = time.monotonic(), None
            try:
                await self.call(self.service.store.keys)
            except VeilError as error:
                self.found = error
        if self.found is not None:
            raise self.found

    async def _serve(self) -> None:
        while self.waiting:
            batch, self.waiting = self.waiting[:TOGETHER], self.waiting[TOGETHER:]
            batch = [(asked, answer) for asked, answer in batch if not answer.done()]
            if not await self._answer(batch):
                for one in batch if len(batch) > 1 else ():  # nobody suffers from another's question
                    await self._answer([one])

    async def _answer(self, batch: list[Waiting]) -> bool:
        """Whether all were answered; one that is alone is told what went wrong."""
        try:
            settled = await self.call(self.service.recommend, [asked for asked, _ in batch]) if batch else []
        except Exception as error:
            if len(batch) == 1 and not batch[0][1].done():
                batch[0][1].set_exception(error)
            return False
        for (_, answer), one in zip(batch, settled):
            if not answer.done():
                answer.set_result(one)
        return True

    def close(self) -> None:
        """Finish what is being done, then let go of the store."""
        self.thread.shutdown(wait=True)
        self.service.store.close()
