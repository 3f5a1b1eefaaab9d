"""A server's federation on Flower's grid, as the server's own file describes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flwr.serverapp import Grid, ServerApp

from veilgraph.errors import VeilError
from veilgraph.federate.network import OVER
from veilgraph.federate.server import Server
from veilgraph.federate.terms import Terms
from veilgraph.files import write_json

app = ServerApp()  # Flower's command line wants to see one; what is run is below, by own_apps


def run(grid: Grid, given: dict[str, Any]) -> None:
    """All rounds; how it ended is written down for who waits for it."""
    folder = Path(given["folder"])
    try:
        server = Server(
            grid,
            Terms.of(given["terms"]),
            folder,
            int(given["clients"]),
            patience=float(given["patience"]),
            waiting=float(given["waiting"]),
            allowed=set(given["nodes"]),
        )
        done = server.run()
    except VeilError as error:
        write_json(folder / OVER, {"error": str(error)})
        return
    over = {"rounds": done.round, "clients": server.told, "refused": server.refused, "idle": done.idle}
    write_json(folder / OVER, over)
