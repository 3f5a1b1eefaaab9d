"""A run folder that is being made: it appears whole, with its ledger bound to its settings, or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.disk import digest
from veilgraph.files import write_text
from veilgraph.folders import made
from veilgraph.layout import CLOSED, CONFIG, LEDGER, OPEN, VOCABULARY
from veilgraph.load.graph import Graph
from veilgraph.load.vocabulary import write_names
from veilgraph.run.curator import place_of, write_curator
from veilgraph.run.facts import bind, facts_of
from veilgraph.run.files import check_target
from veilgraph.run.run import Run


@dataclass(frozen=True)
class Draft:
    """Where it will be, where it is meanwhile, and what is spent on the way."""

    target: Path
    folder: Path
    ledger: Ledger

    def keep(self, graph: Graph, config: TrainConfig, facts: Mapping[str, Any]) -> Run:
        """Bind settings and facts to the ledger, and put the folder in its place.

        Where nothing is promised about the graph its plain fingerprint is stored; else a commitment under a salt.
        """
        salt = None if config.regime == "none" else secrets.token_hex(32)
        every = facts_of(graph, self.target, salt) | dict(facts) | {"training": secrets.token_hex(8)}
        write_names(self.folder / VOCABULARY, graph.entities.array, graph.relations.array)
        text = bind(self.ledger, config, every, names=digest(self.folder / VOCABULARY))
        write_text(self.folder / CONFIG, text)
        write_curator(self.folder, {"salt": salt, "place": place_of(self.folder)})
        return Run(self.target, config, every, graph)


@contextmanager
def drafted(folder: str | Path, *, closed: bool) -> Iterator[Draft]:
    """A new run folder in the making; refuses a folder that is in use, and leaves nothing behind if something goes wrong.

    One that promises nothing is ``closed``: its vectors are as confidential as what they were learnt from.
    """
    path = Path(folder)
    check_target(path)
    with made(path, mode=CLOSED if closed else OPEN) as draft:
        yield Draft(path, draft, Ledger(draft / LEDGER))
