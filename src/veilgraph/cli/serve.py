"""veil serve RUN --sanitise balanced --user-budget 10  ·  veil serve key add NAME --role reader"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="RUN | key add|remove|list [NAME]",
        help="a finished run folder; or make, remove or list keys",
    )
    parser.add_argument(
        "--store",
        default="service.sqlite",
        help="what was spent, answered, and who may ask: a file (default service.sqlite), or postgresql://…",
    )
    parser.add_argument("--role", default="reader", help="of a new key: reader (default) or curator")
    lists = parser.add_argument_group("lists")
    lists.add_argument("--sanitise", default="", help="how lists are made safer: see veil sanitise --with")
    lists.add_argument("--attribute", help="what lists should not tell (balanced needs it), e.g. gender")
    lists.add_argument(
        "--everyone-told",
        action="store_true",
        help="learn from the attribute although it is marked confidential",
    )
    lists.add_argument("--relation", help="from users to items (default: the commonest)")
    lists.add_argument("--top", type=int, default=10, help="items in a list (default 10)")
    lists.add_argument(
        "--catalogue",
        help="the public list of all items: a file of names (exponential needs one), or how their names begin (item/)",
    )
    lists.add_argument("--known", action="store_true", help="lists may repeat what the user has")
    lists.add_argument(
        "--user-budget",
        type=float,
        default=10.0,
        help="what all lists of a person may cost: ε, or lists where there is no ε (default 10)",
    )
    lists.add_argument(
        "--key-budget",
        type=float,
        help="what new lists asked for with one key may cost in a day (default: a tenth of everybody's budgets)",
    )
    network = parser.add_argument_group("network")
    network.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    network.add_argument("--port", type=int, default=8080, help="0 takes any that is free (default 8080)")
    network.add_argument(
        "--rate", type=float, default=1000.0, help="requests a second for each key (default 1000)"
    )
    network.add_argument(
        "--connections", type=int, default=256, help="of one address at a time (default 256)"
    )
    network.add_argument(
        "--log", default="-", help="where the access log goes: a file, - (default, stderr) or none"
    )
    parser.add_argument("--graph", help="the graph, if it has moved")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Prepare a service, or see to keys."""
    if options.words[0] == "key":
        return _key(options)
    from veilgraph.errors import UsageError
    from veilgraph.serve import prepare

    if len(options.words) != 1:
        raise UsageError(f"expected «veil serve RUN» or «veil serve key …», found {options.words}.")
    global _ready
    _ready = prepare(
        options.words[0],
        store=options.store,
        graph=options.graph,
        host=options.host,
        port=options.port,
        rate=options.rate,
        log=None if options.log == "none" else options.log,
        sanitise=options.sanitise,
        attribute=options.attribute,
        everyone_told=options.everyone_told,
        catalogue=options.catalogue,
        relation=options.relation,
        top=options.top,
        known=options.known,
        user_budget=options.user_budget,
        key_budget=options.key_budget,
        connections=options.connections,
    )
    return _ready.facts


_ready: Any = None


def _key(options: argparse.Namespace) -> dict[str, Any]:
    from veilgraph.errors import UsageError
    from veilgraph.serve.store import open_store

    store = open_store(options.store)
    try:
        match options.words[1:]:
            case ["add", name]:
                return {"name": name, "role": options.role, "key": store.add_key(name, options.role)}
            case ["remove", name]:
                store.remove_key(name)
                return {"removed": name}
            case ["list"]:
                return {"keys": [{"name": name, "role": role} for name, role in store.keys().values()]}
    finally:
        store.close()
    raise UsageError(
        "expected «veil serve key add NAME», «veil serve key remove NAME» or «veil serve key list»."
    )


def show(result: dict[str, Any]) -> None:
    """For people: one line per fact."""
    from veilgraph.cli.terminal import facts, note, table

    if "keys" in result and isinstance(result["keys"], list):
        table(("name", "role"), [(one["name"], one["role"]) for one in result["keys"]])
        return
    facts(result)
    if "key" in result:
        note("This is the only time the key is shown: only its hash is kept.")


def finish(result: dict[str, Any]) -> None:
    """Answer, once the facts are out."""
    if "address" in result:
        _ready.serve()
