"""What Flower's processes run here: our installed apps and nothing that came over the network.

Flower sends an app's code from whoever submits a run to the server and on to every client, which would execute it. Between
institutions that do not trust each other that must not be: the processes that a SuperLink or a SuperNode starts are these, they
install nothing, and they take what they do from files of their own house.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

CONFIG = "VEILGRAPH_FEDERATION"  # names the file a server's run is described by


def clientapp() -> None:
    """In the place of flwr-clientapp."""
    from veilgraph.federate.client_app import app

    module = importlib.import_module("flwr.supernode.runtime.run_clientapp")
    _replace(
        module,
        install_from_fab=_nothing,
        get_project_dir=lambda *_, **__: Path("nowhere"),
        install_app_dependencies=_refuse,
        get_load_client_app_fn=lambda **_: lambda *_: app,
    )
    importlib.import_module("flwr.supernode.cli.flwr_clientapp").flwr_clientapp()


def serverapp() -> None:
    """In the place of flwr-serverapp."""
    module = importlib.import_module("flwr.superlink.runtime.run_serverapp")
    components = {"tool": {"flwr": {"app": {"components": {"serverapp": "ours"}}}}}
    _replace(
        module,
        install_from_fab=_nothing,
        get_fab_metadata=lambda *_: ("", ""),
        get_project_dir=lambda *_, **__: Path("nowhere"),
        install_app_dependencies=_refuse,
        get_project_config=lambda *_: components,
        get_fused_config_from_dir=lambda *_: {},
        run_=_serve,
    )
    importlib.import_module("flwr.superlink.cli.flwr_serverapp").flwr_serverapp()


def _serve(grid: Any, context: Any, **_: Any) -> Any:
    """The federation that this house's own file describes; one at a time."""
    import fcntl

    from veilgraph.federate.server_app import run

    place = Path(os.environ[CONFIG])
    with place.open("rb") as file, suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        run(grid, json.loads(file.read()))
    return context


def _replace(module: Any, **functions: Callable[..., Any]) -> None:
    """Stop, rather than run anything, if Flower is not as it was when this was written."""
    for name, function in functions.items():
        if not hasattr(module, name):
            sys.exit(f"{module.__name__} has no {name}: this version of Flower is not known to be safe.")
        setattr(module, name, function)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _refuse(*_: Any, **__: Any) -> None:
    raise RuntimeError("nothing is installed at run time")
