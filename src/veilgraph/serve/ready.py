"""From a run to a service that only has to be started."""

from __future__ import annotations

import gc
import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilgraph import machine
from veilgraph.disk import explained
from veilgraph.errors import ConfigError, InputError, MissingExtraError

if TYPE_CHECKING:
    from fastapi import FastAPI

CONNECTIONS = 2048  # of all addresses together
STORE = "service.sqlite"  # in the working folder: it outlives runs, as what people spent does


@dataclass(frozen=True)
class Ready:
    """A service that only has to be started."""

    app: FastAPI
    socket: socket.socket
    connections: int  # of one address
    facts: dict[str, Any]

    def serve(self) -> None:
        """Answer until told to stop (SIGINT, SIGTERM); what was begun is finished."""
        import uvicorn

        from veilgraph.serve.connections import patient

        gc.collect()
        gc.freeze()  # what is there stays; looking through it all again would make requests wait
        sys.setswitchinterval(
            0.0005
        )  # the desk's thread should not wait long for the network's, nor the other way
        uvicorn.Server(
            uvicorn.Config(
                self.app,
                log_level="warning",
                access_log=False,
                server_header=False,
                limit_concurrency=CONNECTIONS,
                http=patient(self.connections),
                ws="none",
                timeout_keep_alive=15,
                timeout_graceful_shutdown=10,
            )
        ).run(sockets=[self.socket])


def prepare(
    run: str | Path,
    *,
    store: str = STORE,
    graph: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    rate: float = 1000.0,
    connections: int = 256,
    log: str | None = "-",
    **terms: Any,
) -> Ready:
    """Everything but answering: the run is read, the store opened, the address taken. ``terms`` as in service.Terms.

    Reads confidential data: as service.Service.open. Releases: nothing yet.
    """
    began = time.perf_counter()
    try:
        from veilgraph.serve.app import create
    except ImportError:
        raise MissingExtraError("veil serve", "serve") from None
    from veilgraph.serve.service import Service, Terms
    from veilgraph.serve.store import open_store, without_password

    if not rate > 0:
        raise ConfigError(f"a rate is a positive number of requests a second, found {rate:g}.")
    if connections < 1:
        raise ConfigError(f"an address has one connection at least, found {connections}.")
    machine.keep_memory()
    _allow_files(2 * CONNECTIONS)
    opened = open_store(store)
    keys = [role for _, role in opened.keys().values()]
    if not keys:
        raise InputError(
            f"{without_password(store)} holds no key, so nobody could ask. Make one with veil serve key add NAME and the "
            "same --store."
        )
    address = _listen(host, port)
    try:
        service = Service.open(run, opened, Terms(**terms), graph=graph)
    except BaseException:
        address.close()
        raise
    limit = service.account(0.0)
    facts = {
        "address": f"http://{f'[{host}]' if ':' in host else host}:{address.getsockname()[1]}",
        "run": f"{service.run.folder} ({service.run.config.model}, guarantee: {service.certificate['guarantee']})",
        "lists": f"{service.terms.top} of {len(service.shelf.items):,} items, for {len(service.places):,} users; "
        + ("known items may repeat" if service.terms.known else "new items only"),
        "sanitiser": service.terms.sanitise or "none",
        "promise": service.promise,
        "budget": f"{'no limit' if limit['budget'] is None else format(limit['budget'], 'g')} {limit['unit']} a person; "
        f"a list costs {limit['cost']:g}; a key may spend {service.key_budget:g} a day",
        "store": without_password(store),
        "keys": f"{keys.count('reader')} of readers, {keys.count('curator')} of curators",
        "ready": f"{time.perf_counter() - began:.1f} s",
    }
    return Ready(create(service, rate=rate, tell=_teller(log)), address, connections, facts)


def _listen(host: str, port: int) -> socket.socket:
    """The address, taken before anything else is done."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)  # another one would be told so now
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"{host}:{port} cannot be listened on: {error}. Choose another --port.") from None
    return listener


def _teller(log: str | None) -> Callable[[str], None] | None:
    """Where the access log goes: a file, standard error («-»), or nowhere."""
    if log is None:
        return None
    with explained(Path(log)):
        where = (
            sys.stderr.fileno() if log == "-" else os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        )

    def tell(line: str) -> None:
        os.write(where, f"{line}\n".encode())  # (nothing is held back that could fail later)

    return tell


def _allow_files(wanted: int) -> None:
    """As many open files as connections need, where the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
