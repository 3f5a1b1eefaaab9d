"""What settings were tuned on travels with them: found by looking at confidential statements, they are no public choice.

``everything``        by free tuning of a graph nobody had marked, or by a training that promises nothing: what it derived
                      from a graph's sizes follows from how many confidential statements there are
``unrestricted …``    of the unrestricted statements of a marked graph, which the digest is of: they are public
``public``            by somebody who says that all of it was public: taken at the word, and named in the certificate
``public, unrestricted …``   both: a free study that began with such settings
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilgraph.config import TrainConfig
from veilgraph.errors import ConfigError, PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.mark import unrestricted

EVERYTHING, UNRESTRICTED, PUBLIC = "everything", "unrestricted", "public"


def tuned_on(graph: Graph) -> str:
    """What a free study of this graph looks at."""
    if graph.marks is None:
        return EVERYTHING
    return f"{UNRESTRICTED} {unrestricted(graph).fingerprint}"


def of_a_run(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, with what they were found on: a training that promised nothing read everything there was.

    Reads confidential data: none; but the settings of such a run follow from exact numbers of statements.
    """
    kept = {key: value for key, value in settings.items() if value is not None}
    return {**kept, "tuned_on": EVERYTHING} if TrainConfig.of(kept).open_data else kept


def carried(config: TrainConfig, graph: Graph) -> str:
    """What settings that a study began with and what it finds were tuned on, together."""
    before, now = config.tuned_on, tuned_on(graph)
    if now == EVERYTHING or before in (None, now):
        return now
    both = f"{PUBLIC}, {now}"
    return both if before in (PUBLIC, both) else EVERYTHING


def refuse(config: TrainConfig, graph: Graph) -> None:
    """Raise where a promise is made with settings that were found by looking at what is confidential in this graph."""
    told = config.tuned_on
    if told is None or told == PUBLIC or not (config.private or config.drop_confidential):
        return
    told = told.removeprefix(f"{PUBLIC}, ")
    if told != EVERYTHING and not told.startswith(f"{UNRESTRICTED} "):
        raise ConfigError(f"tuned_on is what veil tune writes into best.yaml, or «public»; found {told!r}.")
    if told != tuned_on(graph):
        found = (
            "every statement, by a study of a graph nobody had marked or by a training without a promise"
            if told == EVERYTHING
            else "a graph with other unrestricted statements"
        )
        raise PrivacyError(
            f"these settings were tuned on {found}, so what is confidential now had a part in them, and no ε covers that. "
            "Leave them out and let them be derived anew, tune again on the marked graph (free: unrestricted statements alone), "
            "tune with --epsilon (charged), or say --tuned-on public if all of it was."
        )


def said(config: TrainConfig) -> list[str]:
    """What a certificate takes to be public about them."""
    vouched = config.tuned_on is not None and config.tuned_on.split(", ")[0] == PUBLIC
    return (
        ["settings, said to have been tuned on public statements"]
        if vouched and (config.private or config.drop_confidential)
        else []
    )
