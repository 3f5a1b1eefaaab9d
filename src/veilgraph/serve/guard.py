"""Around every request: size and time limits, security headers, metrics, and a log that names nobody."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from fastapi import HTTPException
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 4096  # bytes of a request's body, and of its address
PATIENCE = 10.0  # seconds for a request, its body included
PAGE_POLICY = "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'; base-uri 'none'"
DOCS_POLICY = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Metrics:
    """Counts for Prometheus; none is about a person."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "veil_requests", "Requests by route and status.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "veil_request_seconds",
            "Time from the first byte of a request to the last of its answer.",
            ["route"],
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 10),
        )
        self.charged = Counter(
            "veil_charged", "What new lists have cost, all people together.", registry=self.registry
        )
        self.repeated = Counter("veil_repeated", "Lists that had been given before.", registry=self.registry)
        self.refused = Counter("veil_refused", "Lists that a budget did not allow.", registry=self.registry)
        self.quota = Counter("veil_quota", "Lists that a key's day did not allow.", registry=self.registry)
        self.lost = Counter("veil_log_lost", "Lines the access log could not take.", registry=self.registry)


TOO_LARGE = HTTPException(413, f"a request's body has at most {LARGEST:,} bytes.")


class Guard:
    """ASGI middleware. ``tell`` gets one JSON line per request: when, what route, status, milliseconds, which key."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, routes: set[str], tell: Callable[[str], None] | None
    ) -> None:
        self.app, self.metrics, self.routes, self.tell = app, metrics, routes, tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, read, failed = time.perf_counter(), 0, 0, None
        path = scope["path"]
        policy = (DOCS_POLICY if path.startswith(("/docs", "/redoc")) else PAGE_POLICY).encode()
        scope.setdefault("state", {})["key"] = None

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > LARGEST:
                raise TOO_LARGE
            return message

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                extra = [*HEADERS, (b"content-security-policy", policy)]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        async def refuse(number: int, why: str) -> None:
            if not status:
                await JSONResponse({"detail": why}, number)(scope, receive, observed)

        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        try:
            if not length.isdigit() or len(length) > 10 or int(length) > LARGEST:
                await refuse(413, TOO_LARGE.detail)
            elif len(scope["raw_path"]) + len(scope["query_string"]) > LARGEST:
                await refuse(414, f"an address has at most {LARGEST:,} bytes.")
            else:
                async with asyncio.timeout(PATIENCE):
                    await self.app(scope, limited, observed)
        except TimeoutError:
            await refuse(503, "no answer in time. If a list was made it is stored and charged: ask again.")
        except Exception as error:  # its words might name somebody: only what and where is written down
            failed = f"{type(error).__name__} at {_where(error)}"
            await refuse(500, "something went wrong here. What was charged is stored: ask again.")
        finally:
            seconds = time.perf_counter() - began
            route = path if path in self.routes else "other"
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            if self.tell is not None:
                try:
                    self.tell(_line(scope, route, status, seconds, failed))
                except OSError:  # a full disk is no reason not to answer
                    self.metrics.lost.inc()


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{PurePath(frame.filename).name}:{frame.lineno}"


def _line(scope: Any, route: str, status: int, seconds: float, failed: str | None) -> str:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps(
        {
            "time": when,
            "method": scope["method"] if scope["method"] in ("GET", "POST", "HEAD") else "other",
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 2),
            "key": scope["state"]["key"],
        }
        | ({"error": failed} if failed else {})
    )
