"""The HTTP service: what can be asked, by whom, and what is refused.

Names of people belong into bodies, not addresses (addresses are logged on the way): POST is there for everything that
names somebody. GET does the same, for a browser's address line.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field

from veilgraph import __version__
from veilgraph.errors import PrivacyError, UnknownNameError, UsageError, VeilError
from veilgraph.serve.access import Client, Doorkeeper
from veilgraph.serve.desk import READY, Busy, Desk
from veilgraph.serve.guard import Guard, Metrics
from veilgraph.serve.service import Service

PAGE = Path(__file__).with_name("page")
AT_ONCE = 4  # questions about facts of one key that wait: they are answered by the thread that makes lists
FRONTIER = "frontier.svg"  # in the run folder, by veil attack attribute --frontier
Name = Annotated[str, Field(min_length=1, max_length=1000)]


class Ask(BaseModel, extra="forbid"):
    """A list for a person."""

    user: Name = Field(description="whose list")
    top: int | None = Field(None, ge=1, description="the first so many items of it (default: all)")
    draw: int = Field(1, ge=1, le=1_000_000, description="another number: another list, charged anew")


class AskOriginal(BaseModel, extra="forbid"):
    """The list as the model makes it."""

    user: Name


class AskFact(BaseModel, extra="forbid"):
    """(head, relation, ?) or (?, relation, tail)."""

    relation: Name
    head: Name | None = None
    tail: Name | None = None
    top: int = Field(10, ge=1, le=100)


def create(service: Service, *, rate: float = 1000.0, tell: Callable[[str], None] | None = None) -> FastAPI:
    """The application; ``tell`` gets a line for every request."""
    desk, metrics = Desk(service), Metrics()
    door = Doorkeeper(desk, rate)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app: FastAPI = FastAPIOffline(
        title="veilgraph",
        version=__version__,
        description=f"Lists of recommendations. What one promises: {service.promise}.",
        lifespan=life,
    )
    app.add_exception_handler(RequestValidationError, _explain)
    app.add_exception_handler(VeilError, _later)
    clients = _clients(door)
    _ask(app, service, desk, metrics, clients)
    _tell(app, service, desk, metrics, clients)
    routes = {getattr(route, "path", "") for route in app.routes}
    app.add_middleware(Guard, metrics=metrics, routes=routes, tell=tell)
    return app


async def _explain(_: Request, error: Exception) -> Response:
    """What is wrong with a request, without repeating what was sent."""
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return JSONResponse({"detail": "; ".join(found)[:500].encode("ascii", "replace").decode()}, 422)


async def _later(_: Request, error: Exception) -> Response:
    """What cannot be answered now: the store does not answer, or a disk is full. Its words are for the log alone."""
    return JSONResponse(
        {"detail": "this cannot be answered now: what it needs does not answer. Try again."},
        503,
        {"Retry-After": "1"},
    )


def _clients(door: Doorkeeper) -> tuple[Any, Any]:
    """Two dependencies: anybody with a key, and curators."""
    bearer = Depends(HTTPBearer(auto_error=False, description="a key made by veil serve key add"))

    async def anybody(request: Request, given: HTTPAuthorizationCredentials | None = bearer) -> Client:
        client = await door.client(given.credentials) if given is not None else None
        if client is None:
            raise HTTPException(
                401, "a valid key is needed: Authorization: Bearer KEY.", {"WWW-Authenticate": "Bearer"}
            )
        request.state.key = client.name
        if not door.allows(client):
            raise HTTPException(429, "too many requests with this key. Wait a moment.", {"Retry-After": "1"})
        return client

    with_key = Depends(anybody)

    async def curator(client: Client = with_key) -> Client:
        if not client.curator:
            raise HTTPException(403, "this is for curators: a reader's key sees sanitised lists only.")
        return client

    return with_key, Depends(curator)


def _ask(app: FastAPI, service: Service, desk: Desk, metrics: Metrics, clients: tuple[Any, Any]) -> None:
    """Routes that answer from the model."""
    anybody, curator = clients

    def need(user: str) -> None:
        if user not in service.places:
            raise HTTPException(404, "nobody of that name has a list here.")

    async def recommend(ask: Ask, client: Client) -> Response:
        need(ask.user)
        if ask.top is not None and ask.top > service.terms.top:
            raise HTTPException(422, f"lists here have {service.terms.top} items.")
        try:
            settled = await desk.recommend(ask.user, ask.draw, client.name)
        except Busy:
            raise HTTPException(503, "too many requests wait. Try again.", {"Retry-After": "1"}) from None
        except VeilError:
            raise HTTPException(
                503, "no list can be made or charged now. Try again.", {"Retry-After": "1"}
            ) from None
        account = service.account(settled.spent)
        if settled.key_spent:
            metrics.quota.inc()
            why = (
                "new lists asked for with this key have cost all it may spend in a day. Lists "
                "that were given before can be asked for again."
            )
            return JSONResponse({"detail": why, **account}, 429)
        if settled.answer is None:
            metrics.refused.inc()
            why = (
                f"this person's budget is spent: {settled.spent:g} of {service.terms.user_budget:g} {service.unit}, "
                f"and another list costs {service.cost:g}. Lists that were given before can be asked for again."
            )
            return JSONResponse({"detail": why, **account}, 429)
        (metrics.repeated.inc if settled.again else lambda: metrics.charged.inc(service.cost))()
        items = [{"item": item, "rank": rank} for rank, item in enumerate(settled.answer[: ask.top], 1)]
        return JSONResponse(
            {
                "user": ask.user,
                "items": items,
                "sanitiser": service.terms.sanitise or "none",
                "promise": service.promise,
                "epsilon": service.epsilon,
                "again": settled.again,
                **account,
            }
        )

    @app.post("/v1/recommend", summary="A sanitised list for a person")
    async def recommend_by_body(ask: Ask, client: Client = anybody) -> Response:
        return await recommend(ask, client)

    @app.get("/v1/recommend", summary="The same, by address")
    async def recommend_by_address(ask: Annotated[Ask, Query()], client: Client = anybody) -> Response:
        return await recommend(ask, client)

    @app.post("/v1/original", dependencies=[curator], summary="The list as the model makes it (curators)")
    async def original(ask: AskOriginal) -> Response:
        need(ask.user)
        return JSONResponse({"user": ask.user, "items": await desk.call(service.original, ask.user)})

    @app.post("/v1/budget", dependencies=[anybody], summary="What a person's lists have cost")
    async def budget(ask: AskOriginal) -> Response:
        need(ask.user)
        return JSONResponse({"user": ask.user, **await desk.call(service.budget, ask.user)})

    asking: Counter[str] = Counter()

    async def predict(ask: AskFact, client: Client) -> Response:
        if asking[client.name] >= AT_ONCE:
            raise HTTPException(429, f"{AT_ONCE} questions of this key wait already.", {"Retry-After": "1"})
        asking[client.name] += 1
        try:
            answers = await desk.call(
                service.predict, ask.head, ask.relation, ask.tail, ask.top, curator=client.curator
            )
        except PrivacyError as error:
            raise HTTPException(403, str(error)) from None
        except UnknownNameError:
            raise HTTPException(404, "there is no such entity or relation.") from None
        except UsageError as error:
            raise HTTPException(422, str(error)) from None
        finally:
            asking[client.name] -= 1
        return JSONResponse({"answers": answers})

    @app.post("/v1/predict", summary="Answers to (head, relation, ?) or (?, relation, tail)")
    async def predict_by_body(ask: AskFact, client: Client = anybody) -> Response:
        return await predict(ask, client)

    @app.get("/v1/predict", summary="The same, by address")
    async def predict_by_address(ask: Annotated[AskFact, Query()], client: Client = anybody) -> Response:
        return await predict(ask, client)


def _tell(app: FastAPI, service: Service, desk: Desk, metrics: Metrics, clients: tuple[Any, Any]) -> None:
    """Routes that say something about the service."""
    anybody, curator = clients

    @app.get("/v1/certificate", dependencies=[anybody], summary="What the run and its lists promise")
    async def certificate() -> Response:
        return JSONResponse(service.statement())

    @app.get("/v1/me", summary="Whose key this is")
    async def me(client: Client = anybody) -> Response:
        return JSONResponse({"name": client.name, "role": client.role, "top": service.terms.top})

    @app.get("/v1/users", dependencies=[curator], summary="Some users whose name begins so (curators)")
    async def users(begins: Annotated[str, Query(max_length=1000)] = "") -> Response:
        found = (name for name in service.places if name.startswith(begins))
        return JSONResponse({"users": [name for name, _ in zip(found, range(20))]})

    @app.get(
        "/v1/frontier", dependencies=[curator], summary="Attack success against utility, a picture (curators)"
    )
    async def frontier() -> Response:
        path = service.run.folder / FRONTIER
        if not path.is_file():
            raise HTTPException(
                404, "no frontier was measured: veil attack attribute RUN --attribute NAME --frontier."
            )
        return FileResponse(path, media_type="image/svg+xml")

    @app.get("/healthz", summary="Whether the process is alive; /readyz says whether it can do its work")
    async def health() -> Response:
        return JSONResponse({"status": "ok", "waiting": len(desk.waiting)})

    @app.get("/readyz", summary="Whether lists can be given: the store is read")
    async def readiness() -> Response:
        try:
            async with asyncio.timeout(2 * READY):
                await desk.ready()
        except (VeilError, TimeoutError):
            return JSONResponse({"status": "the store does not answer"}, 503, {"Retry-After": "1"})
        return JSONResponse({"status": "ok"})

    @app.get("/metrics", summary="For Prometheus")
    async def counts() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
