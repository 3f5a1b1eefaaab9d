"""veil bench NAME: the scripts of the repository's bench folder (train, rank, growth, load, quality, private, utility, serve, …)."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import sys
from pathlib import Path
from typing import Any

SCRIPTS = (
    "train",
    "rank",
    "growth",
    "opening",
    "load",
    "quality",
    "private",
    "utility",
    "selection",
    "serve",
    "federate",
    "network",
    "convolution",
    "descriptions",
    "busy",
    "versions",
)
PEERS = {  # what a script compares with, looked for before the first measurement
    "train": ("pykeen",),
    "rank": ("pykeen",),
    "private": ("pykeen", "opacus"),
    "convolution": ("torch_geometric",),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of this verb."""
    parser.add_argument("name", choices=SCRIPTS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="flags of the script, e.g. --repeats 5")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run the script; its progress goes to stderr, its object to us."""
    from veilgraph.errors import InputError, MissingExtraError

    folder = next(
        (f for f in (Path("bench"), Path(__file__).parents[3] / "bench") if (f / "common.py").is_file()), None
    )
    if folder is None:
        raise InputError(
            "the benchmark scripts are in the repository's bench folder, not in the installed package."
        )
    sys.path.insert(0, str(folder))
    rest = [word for word in options.rest if word != "--json"]
    options.json = options.json or "--json" in options.rest
    missing = [peer for peer in PEERS.get(options.name, ()) if importlib.util.find_spec(peer) is None]
    if missing:
        raise MissingExtraError(
            f"veil bench {options.name} compares with {' and '.join(missing)}, and", "bench"
        )
    script = importlib.import_module(options.name)
    helped = {"-h", "--help"} & set(rest)
    with contextlib.nullcontext() if helped else contextlib.redirect_stdout(io.StringIO()):
        result: dict[str, Any] = script.main(rest)
    return result


def show(result: dict[str, Any]) -> None:
    """For people."""
    import json

    print(json.dumps(result, indent=2, ensure_ascii=False))
