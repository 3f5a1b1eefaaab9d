"""Where benchmark graphs are: folders of ``VEILGRAPH_DATA``, or of ``../shared/datasets``."""

from __future__ import annotations

import os
from pathlib import Path

from veilgraph.errors import InputError, UnknownNameError
from veilgraph.load.readers.folder import split_files

BUILT_IN = {"name": "builtin:hospital", "where": "generated", "splits": "veil load --split random"}


def data_folder() -> Path:
    """The folder that holds benchmark folders."""
    return Path(os.environ.get("VEILGRAPH_DATA", "../shared/datasets"))


def known() -> list[dict[str, str]]:
    """Every benchmark that can be read here."""
    found = [BUILT_IN]
    root = data_folder()
    if root.is_dir():
        for path in sorted(root.iterdir()):
            files = split_files(path) if path.is_dir() else {}
            if files:
                found.append({"name": path.name, "where": str(path), "splits": ", ".join(files)})
    return found


def benchmark(name: str) -> Path | None:
    """The folder of a benchmark by its name alone, if there is one."""
    plain = Path(name).name == name and name not in ("", ".", "..")
    return data_folder() / name if plain and split_files(data_folder() / name) else None


def find(name: str) -> Path:
    """The folder of one benchmark."""
    path = data_folder() / name
    if not split_files(path):
        names = [item["name"] for item in known()]
        raise UnknownNameError(
            "dataset", name, names, hint=f"Looked in {data_folder()}; set VEILGRAPH_DATA to another folder."
        )
    return path


def there(name: str) -> Path:
    """The folder of published files that are no benchmark of statements."""
    source = data_folder() / name
    if not source.is_dir():
        raise InputError(
            f"{source} is not there: it should hold the published files of {name}. Set VEILGRAPH_DATA."
        )
    return source
