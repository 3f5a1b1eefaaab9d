"""The Flower app of a client: the same in one process and between machines.

Its node's configuration says where the graph, the run folder and the federation's secret are, and what the client
promises about its data (``own``): the server has no say in any of them. Whatever goes wrong here is told here; the server
learns only that something did, for the words of an error may name somebody.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from veilgraph.errors import VeilError
from veilgraph.federate import messages
from veilgraph.federate.member import Member
from veilgraph.federate.messages import pack
from veilgraph.federate.names import read_secret
from veilgraph.federate.terms import Terms
from veilgraph.run.run import Run

LARGEST = 1 << 34  # bytes of an array a server may send
app = ClientApp()
kept: dict[
    str, Member
] = {}  # in one process: clients stay between messages, instead of being read from disk again


def _quiet(answer: Callable[[Message, Context], Any]) -> Callable[[Message, Context], Message]:
    @wraps(answer)
    def safe(message: Message, context: Context) -> Message:
        try:
            return Message(answer(message, context), reply_to=message)
        except Exception as error:
            if context.node_config.get("together"):
                raise
            if isinstance(error, VeilError):
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
            else:
                traceback.print_exc()
            return Message(pack({}, status="failed", reason=type(error).__name__), reply_to=message)

    return safe


def _where(context: Context) -> dict[str, Any]:
    """The node's configuration; between machines it is in a file of the client's."""
    given = dict(context.node_config)
    if "config" in given:
        return dict(json.loads(Path(str(given["config"])).read_text(encoding="utf-8")))
    return given


@contextmanager
def _member(context: Context) -> Iterator[Member]:
    """The client, for one message at a time: nobody else works on its folder meanwhile."""
    where = _where(context)
    folder = str(where["folder"])
    with Run.open(folder).locked():
        member = kept.get(folder)
        if member is None:
            member = Member.open(folder, str(where["graph"]), read_secret(str(where["secret"])))
        if where.get("together"):
            kept[folder] = member
        yield member


@app.query("hello")
@_quiet
def hello(message: Message, context: Context) -> Any:
    """Join on the server's terms: tokens of the rows to be shared, and the client's own name."""
    where = _where(context)
    terms = Terms.of(str(messages.facts(message)["terms"]))
    own = json.loads(str(where.get("own", "{}")))
    secret = read_secret(str(where["secret"]))
    member = Member.join(str(where["folder"]), str(where["graph"]), terms, secret, own)
    if where.get("together"):
        kept[str(where["folder"])] = member
    return pack({"tokens": member.tokens}, status="here", name=str(where["name"]), idle=member.idle)


@app.train()
@_quiet
def train(message: Message, context: Context) -> Any:
    """A round of local epochs; rows leave when their noise is in them and it is on the ledger."""
    number = int(messages.facts(message)["round"])
    with _member(context) as member:
        rows = member.train(number, messages.array(message, "rows", LARGEST))
    if rows is None:
        return pack({}, status="spent", round=number)
    return pack({"rows": rows}, status="trained", round=number)


@app.evaluate()
@_quiet
def validate(message: Message, context: Context) -> Any:
    """MRR on unrestricted validation statements, if there are any."""
    others = messages.array(message, "others", LARGEST) if messages.facts(message)["others"] else None
    with _member(context) as member:
        found = member.validate(messages.array(message, "rows", LARGEST), others)
    return pack({}, status="validated", **(found or {}))


@app.query("finish")
@_quiet
def finish(message: Message, context: Context) -> Any:
    """Write vectors and certificate; figures are told only where nothing is promised."""
    others = messages.array(message, "others", LARGEST) if messages.facts(message)["others"] else None
    with _member(context) as member:
        found = member.finish(messages.array(message, "rows", LARGEST), others)
    kept.pop(str(_where(context)["folder"]), None)
    tell = [name for name in ("fede", "shared") if name in found and member.open_data]
    return pack({}, status="finished", **{f"mrr.{name}": float(found[name]["mrr"]) for name in tell})
