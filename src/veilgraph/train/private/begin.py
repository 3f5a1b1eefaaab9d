"""Before a private training: one noisy count, settings derived from it, and the noise that keeps the budget."""

from __future__ import annotations

import math

import numpy as np

from veilgraph.account.events import non_private
from veilgraph.account.ledger import Ledger
from veilgraph.account.prices import Asked, Tallies
from veilgraph.account.promise import SEEDED, Promise
from veilgraph.config import TrainConfig
from veilgraph.load.graph import Graph
from veilgraph.mark.rules import unrestricted
from veilgraph.mark.units import units
from veilgraph.noise.gauss import source
from veilgraph.noise.measure import Meter
from veilgraph.run.facts import sizes_of
from veilgraph.train.private.defaults import settled_defaults

FEWEST = 100.0  # a noisy count below this is taken for this


def settle_privately(
    graph: Graph, public: Graph, config: TrainConfig, ledger: Ledger
) -> tuple[TrainConfig, float, str]:
    """The complete configuration, the noisy number of units, and a line that says what was chosen.

    Reads confidential data: the number of units. Releases: that number with Gaussian noise, charged before it is drawn.
    """
    found = counted_units(graph, config, ledger)
    config, line = settled_defaults(graph, public, config, found)
    promise = promise_of(graph, config, found).settled(ledger)
    noise: dict[str, float | None] = {"noise_multiplier": promise.noise_multiplier}
    if promise.counts:
        noise |= {"prior_noise": promise.prior_noise, "prior_epsilon": promise.prior_epsilon}
    if promise.asks:
        noise |= {"answer_epsilon": promise.answer_epsilon, "noise_multiplier": None}
    config = config.with_values(**noise)
    if promise.asks:
        sure = 100 / (1 + math.exp(-(promise.answer_epsilon or 0.0)))
        return config, found, f"{line} Confidential: randomised response, each answer true with {sure:.3g} %."
    privately = (
        " Confidential: all of ε goes to noisy counts."
        if not promise.steps
        else f" Confidential: {promise.steps} private steps of about {promise.terms.expected:,.0f} units, "
        f"noise multiplier {promise.noise_multiplier:.3g}, clip {config.clip:g}, {promise.mechanism}."
    )
    return config, found, line + privately


def promise_of(graph: Graph, config: TrainConfig, count: float) -> Promise:
    """What a configuration promises of a graph with so many units (a noisy number)."""
    return Promise.of(config.as_dict(), {"units": round(count, 1), **sizes_of(graph)})


def counted_units(
    graph: Graph, config: TrainConfig, ledger: Ledger, asked: Asked | Tallies | None = None
) -> float:
    """How many units there are, about; asked for as the promise of the settings asks, if nothing else is said.

    Reads confidential data: the number of units. Releases: that number with Gaussian noise, charged before it is drawn.
    """
    if config.insecure_noise_seed is not None:
        ledger.charge(non_private(SEEDED), "insecure noise")
    meter = Meter(ledger, source(secure=config.secure_noise, insecure_seed=config.insecure_noise_seed))
    exact = np.array([len(np.unique(units(graph)))])
    if asked is None:  # (which releases there are does not depend on the number)
        rough, _ = settled_defaults(graph, unrestricted(graph), config, FEWEST)
        asked = promise_of(graph, rough, FEWEST).number
    noisy = meter.release(exact, asked, "noisy number of confidential units")
    return max(FEWEST, float(noisy[0]))
