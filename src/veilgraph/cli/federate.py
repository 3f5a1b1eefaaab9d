"""veil federate run CLIENTS --out DIR · split GRAPH · serve DIR · join ADDRESS · run --server DIR · secret FILE · key FILE"""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.cli.flags import add_settings, chosen_settings

DEFENCES = {
    "none": None,
    "dpsgd": "lazy",
    "adafest": "adafest",
    "select": "select",
    "select-as-published": "select-as-published",
}
USAGE = (
    "expected «veil federate run CLIENTS», «run --server DIR», «split GRAPH», «serve DIR», «join ADDRESS», «secret FILE» or "
    "«key FILE»."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="run CLIENTS | split GRAPH | serve DIR | join ADDRESS | secret FILE | key FILE",
        help="a federation in one process; a graph for several clients; a server; a client; a secret; a client's key",
    )
    parser.add_argument(
        "--out", help="the folder to write: of a federation, of clients' graphs, of a client's run"
    )
    rounds = parser.add_argument_group("rounds (run)")
    rounds.add_argument(
        "--strategy",
        default="fede",
        help="which rows are shared: see veil list strategies (default fede); together: all data in one place, a baseline",
    )
    rounds.add_argument("--rounds", type=int, default=40, help="exchanges of rows (default 40)")
    rounds.add_argument(
        "--local-epochs", type=int, default=3, help="epochs of each client in a round (default 3)"
    )
    rounds.add_argument(
        "--own-epochs",
        type=int,
        default=0,
        help="epochs of each client by itself after the last round, never sent (default 0)",
    )
    rounds.add_argument(
        "--aggregate", default="mean", help="mean (default) or trimmed: one hostile client moves less"
    )
    rounds.add_argument(
        "--server-step",
        type=float,
        default=1.0,
        help="how far shared rows go towards their new mean; 2 or 3 where clients hold different relations (default 1)",
    )
    rounds.add_argument(
        "--validate-rounds", type=int, default=5, help="rounds between validations (default 5; 0 never)"
    )
    rounds.add_argument(
        "--defence",
        choices=list(DEFENCES),
        help="of every client's statements; needs --epsilon (default none)",
    )
    rounds.add_argument(
        "--server", metavar="DIR", help="run over the server that veil federate serve started in DIR"
    )
    rounds.add_argument(
        "--patience-seconds", type=float, default=600.0, help="for a client to answer (default 600)"
    )
    ears = parser.add_argument_group(
        "listening (run)", "statements are planted in a victim's graph; see veil attack federated"
    )
    ears.add_argument("--listen", action="store_true", help="write down what attackers see")
    ears.add_argument("--victim", help="the client whose statements are guessed")
    ears.add_argument("--attacker", help="the client that guesses")
    ears.add_argument("--active", action="store_true", help="it also sends reversed rows")
    ears.add_argument("--every", type=int, default=5, help="rounds between attacks (default 5)")
    ears.add_argument("--targets", type=int, default=1000, help="statements to decide about (default 1000)")
    network = parser.add_argument_group("between machines (serve, join)")
    network.add_argument(
        "--client", action="append", default=[], metavar="KEY.pub", help="serve: who may join; once for each"
    )
    network.add_argument(
        "--host", default="127.0.0.1", help="serve: address to listen on (default 127.0.0.1)"
    )
    network.add_argument("--port", type=int, default=9092, help="serve: port (default 9092)")
    network.add_argument("--graph", help="join: the client's graph")
    network.add_argument("--name", help="join: what the client is called")
    network.add_argument("--key", help="join: the client's key, made by veil federate key")
    network.add_argument("--ca", help="join: the server's certificate (tls/ca.pem of its folder)")
    network.add_argument("--secret", help="join: the file with the secret all clients share, and no server")
    parts = parser.add_argument_group("split")
    parts.add_argument("--clients", type=int, default=3, help="how many (default 3)")
    parts.add_argument(
        "--by",
        default="relation",
        help="relation (default), entity, random, or groups: clients with labels that know some of the same entities",
    )
    parts.add_argument("--labels", help="a table of entity and label: every client gets those it learns from")
    parts.add_argument("--types", help="groups: the relation to an entity's type (default: groups at random)")
    add_settings(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Do what the first word says."""
    from veilgraph.errors import UsageError

    match options.words:
        case ["run", *source]:
            return _run(options, source)
        case ["split", graph]:
            return _split(options, graph)
        case ["serve", folder]:
            return _wait(_network().serve(folder, options.client, host=options.host, port=options.port))
        case ["join", address]:
            return _join(options, address)
        case ["secret", path]:
            from veilgraph.federate.names import new_secret

            new_secret(path)
            return {"secret": path}
        case ["key", path]:
            from veilgraph.federate.keys import node_key

            return {"key": path, "public": str(node_key(path))}
    raise UsageError(USAGE)


def _run(options: argparse.Namespace, source: list[str]) -> dict[str, Any]:
    from veilgraph.cli.terminal import RoundProgress, note
    from veilgraph.errors import UsageError
    from veilgraph.federate import federate
    from veilgraph.federate.terms import OWN, Terms

    settings = chosen_settings(options)
    own = {key: value for key, value in settings.items() if key in OWN}
    if options.defence not in (None, "none"):
        if "epsilon" not in own and "noise_multiplier" not in own:
            raise UsageError(
                f"--defence {options.defence} needs --epsilon: how much may be told about a statement."
            )
        own["mechanism"] = DEFENCES[options.defence]
    terms = {
        "strategy": options.strategy,
        "rounds": options.rounds,
        "local_epochs": options.local_epochs,
        "own_epochs": options.own_epochs,
        "aggregate": options.aggregate,
        "server_step": options.server_step,
        "validate_every": options.validate_rounds,
        "seed": int(settings.get("seed", 0)),
        "training": {key: value for key, value in settings.items() if key not in OWN},
    }
    progress = RoundProgress()
    if options.server is not None:
        if source or own.keys() - {"seed", "threads"}:
            raise UsageError(
                "between machines every client says for itself what is its graph and its ε: veil federate join."
            )
        trace = _network().run(
            options.server, Terms(**terms), options.clients, patience=options.patience_seconds
        )
        over: dict[str, Any] = {}
        for over in trace:
            if "note" in over:
                note(over["note"])
            if "round" in over:
                progress.line(
                    over["round"], options.rounds, f"{len(over['came'])} clients, {over['seconds']:.1f} s"
                )
        return {"strategy": options.strategy, "defence": "each client's own", **over}
    if len(source) != 1:
        raise UsageError(USAGE)
    if options.out is None:
        raise UsageError("where to? Name a folder with --out.")
    if not options.listen and (options.victim or options.attacker or options.active):
        raise UsageError("--victim, --attacker and --active are about attackers who listen: add --listen.")
    if options.listen:
        from veilgraph.attack.federated import listen

        if options.victim is None or options.attacker is None:
            raise UsageError("who listens to whom? Name --victim and --attacker.")
        ears = {"active": options.active, "every": options.every, "count": options.targets}
        terms |= ears | {"victim": options.victim, "attacker": options.attacker}
        found = listen(source[0], out=options.out, own=own, listener=progress, tell=note, **terms)
    else:
        found = federate(source[0], out=options.out, own=own, listener=progress, tell=note, **terms)
    return {
        **found,
        "defence": options.defence or ("epsilon" if "epsilon" in own else "none"),
        "out": options.out,
    }


def _split(options: argparse.Namespace, source: str) -> dict[str, Any]:
    from pathlib import Path

    from veilgraph.errors import UsageError
    from veilgraph.federate.divide import divide
    from veilgraph.federate.groups import overlapping
    from veilgraph.load import load, save
    from veilgraph.load.labels import read_labels, write_labels

    if options.out is None:
        raise UsageError("where to? Name a folder with --out.")
    if Path(options.out).exists() and any(Path(options.out).iterdir()):
        raise UsageError(f"{options.out} exists already and is not empty. Choose another --out.")
    if options.types is not None and options.by != "groups":
        raise UsageError("--types says which groups there are: it goes with --by groups.")
    seed, graph = int(chosen_settings(options).get("seed", 0)), load(source)
    if options.by == "groups":
        labels = read_labels(graph, options.labels)
        parts = overlapping(graph, labels, options.clients, types=options.types, seed=seed)
    else:
        words = read_labels(graph, options.labels).words(graph) if options.labels is not None else []
        whole = divide(graph, options.clients, by=options.by, seed=seed)
        parts = {name: (part, words) for name, part in whole.items()}
    for name, (part, words) in parts.items():
        save(part, Path(options.out) / name)
        write_labels(part, words, Path(options.out) / name)
    return {
        "out": options.out,
        "by": options.by,
        "clients": [
            {
                "name": name,
                "entities": len(part.entities),
                "relations": len(part.relations),
                **{split: len(rows) for split, rows in part.splits.items()},
            }
            for name, (part, _) in parts.items()
        ],
    }


def _join(options: argparse.Namespace, address: str) -> dict[str, Any]:
    from veilgraph.errors import UsageError
    from veilgraph.federate.terms import OWN

    missing = [
        name for name in ("graph", "name", "key", "ca", "secret", "out") if getattr(options, name) is None
    ]
    if missing:
        raise UsageError(f"a client needs --{', --'.join(missing)} too.")
    own = chosen_settings(options)
    shared = sorted(set(own) - set(OWN))
    if shared:
        raise UsageError(f"{', '.join(shared)}: that is the federation's to say, in veil federate run.")
    return _wait(
        _network().join(
            address,
            options.out,
            name=options.name,
            graph=options.graph,
            key=options.key,
            certificate=options.ca,
            secret=options.secret,
            own=own,
        )
    )


def _network() -> Any:
    from veilgraph.errors import MissingExtraError

    try:
        import flwr  # noqa: F401

        from veilgraph.federate import network
    except ImportError:
        raise MissingExtraError("veil federate", "federate") from None
    return network


_waiting: Any = None


def _wait(process: Any) -> dict[str, Any]:
    """Its facts now; ``finish`` waits for its end."""
    import signal
    from types import FrameType

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    global _waiting
    _waiting = process
    return dict(next(process))


def finish(result: dict[str, Any]) -> None:
    """Wait, where there is something to wait for."""
    if _waiting is not None:
        for _ in _waiting:
            pass


def show(result: dict[str, Any]) -> None:
    """For people."""
    from veilgraph.account.statement import rounded_up
    from veilgraph.cli.terminal import facts, note, table

    clients = result.get("clients")
    if not isinstance(clients, list):
        facts(result)
        if "secret" in result:
            note("For every client, by a safe way; never for the server.")
        if "public" in result:
            note("Give the public key to whoever runs the server; keep the other one.")
        return
    if "by" in result:
        columns = list(clients[0])
        table(columns, [[one[column] for column in columns] for one in clients])
        return
    if "accuracy" in result:
        columns = ["name", "accuracy", "guarantee"]
        table(("client", *columns[1:]), [[one[column] for column in columns] for one in clients])
        facts({"accuracy, mean of clients": result["accuracy"]})
        return
    rows = [
        (
            one["name"],
            *(_mrr(one["protocols"], p) for p in ("shared", "fede")),
            one["epsilon"] if one["epsilon"] is None else rounded_up(one["epsilon"], 4),
            one["guarantee"],
        )
        for one in clients
    ]
    table(("client", "MRR shared", "MRR fede", "epsilon", "guarantee"), rows)
    facts(
        {
            "MRR, both sides, all shared entities": result["mrr"],
            "MRR, tails among own entities": result["protocols"]["fede"]["mrr"],
        }
    )


def _mrr(protocols: dict[str, Any], name: str) -> float | None:
    return protocols[name]["mrr"] if name in protocols else None
