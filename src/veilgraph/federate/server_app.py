"""The Flower app of a server: its run's configuration names the folder and the terms."""

from __future__ import annotations

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from veilgraph.errors import VeilError
from veilgraph.federate.network import OVER
from veilgraph.federate.server import Server
from veilgraph.federate.terms import Terms
from veilgraph.files import write_json

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """All rounds; how it ended is written down for who waits for it."""
    given = context.run_config
    folder = Path(str(given["folder"]))
    server = Server(
        grid,
        Terms.of(str(given["terms"])),
        folder,
        int(given["clients"]),
        patience=float(given["patience"]),
        waiting=float(given["waiting"]),
    )
    try:
        done = server.run()
    except VeilError as error:
        write_json(folder / OVER, {"error": str(error)})
        return
    write_json(folder / OVER, {"rounds": done.round, "clients": server.told, "refused": server.refused})
