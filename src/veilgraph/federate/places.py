"""Where things are in the folder of a federation."""

from __future__ import annotations

from pathlib import Path

from veilgraph.errors import InputError

SERVER, CLIENTS, SECRET = "server", "clients", "secret.key"


def graphs_of(source: str | Path) -> dict[str, Path]:
    """The clients' graphs by name: the folders in a folder."""
    path = Path(source)
    if not path.is_dir():
        raise InputError(f"{path} is no folder: a federation has a folder with a folder for each client.")
    found = {one.name: one for one in sorted(path.iterdir()) if one.is_dir() and not one.name.startswith(".")}
    if not found:
        raise InputError(
            f"{path} has no folders: make some with veil federate split GRAPH --clients 3 --out {path}"
        )
    return found
