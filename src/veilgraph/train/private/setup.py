"""Before a private training: one noisy count, settings derived from it, and the noise that keeps the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from veilgraph import models
from veilgraph.account.calibrate import calibrate
from veilgraph.account.events import Event, gaussian, non_private, repeated, sampled
from veilgraph.account.ledger import Ledger
from veilgraph.config import TrainConfig
from veilgraph.errors import PrivacyError
from veilgraph.load.graph import Graph
from veilgraph.mark import unknown_relations
from veilgraph.mark.units import units
from veilgraph.models.base import Model
from veilgraph.models.text.rows import Described
from veilgraph.rng import Streams
from veilgraph.runs import DELTA
from veilgraph.train.defaults import complete
from veilgraph.train.priors import check_counts
from veilgraph.train.private import quantile
from veilgraph.train.private.gauss import source
from veilgraph.train.private.marginals import Counting, counting_of
from veilgraph.train.private.measure import Asked, Meter
from veilgraph.train.private.mechanisms import Terms, mechanism_class
from veilgraph.train.private.plan import PrivatePlan, all_steps

COUNT_NOISE = 100.0  # standard deviation of the count of units; its cost is nearly nothing
PRIOR_SHARE = 0.7  # of the budget (in zero-concentrated terms) for the prior, where steps follow
LEARN_STEPS, LEARN_SIZE = 8, 0.3  # over all statements, for relations that start at zero
CORRECT_STEPS, CORRECT_SIZE = 2, 0.01  # over all statements, for what unrestricted ones have taught
CORRECT_NEGATIVES = 64  # few, because every row that is met takes a whole small step
TEXT_RATE, TEXT_PASSES = 0.025, 20  # descriptions: chosen on FB15k-237, inductive split 0
TEXT_SIZE, TEXT_CORRECT = 0.015, 0.002  # where nothing is unrestricted, and after unrestricted statements
TEXT_NEGATIVES, TEXT_WIDTH = 512, 256
OF_STEPS = (
    "private_steps",
    "mechanism",
    "private_optimiser",
    "sample_rate",
    "noise_multiplier",
    "noise_decay",
    "clip",
    "clip_quantile",
    "private_parameters",
    "private_learning_rate",
    "private_negatives",
    "shrinkage",
)
FEWEST = 100.0  # a noisy count below this is taken for this


def settle(
    graph: Graph, public: Graph, config: TrainConfig, ledger: Ledger
) -> tuple[TrainConfig, float, str]:
    """The complete configuration, the noisy number of units, and a line that says what was chosen.

    Reads confidential data: the number of units. Releases: that number with Gaussian noise, charged before it is drawn.
    """
    found = counted_units(graph, config, ledger)
    config, line = settled_defaults(graph, public, config, found)
    terms, counting = terms_of(graph, config, found), counting_of(graph, round(found, 1))
    if config.prior == "marginals" and config.prior_noise is None:
        config = config.with_values(prior_noise=_prior_noise(config, counting, ledger))
    if config.prior == "marginals":
        check_counts(ledger, config, counting)
    if config.noise_multiplier is None:
        config = config.with_values(noise_multiplier=_noise(config, terms, counting, ledger))
    privately = (
        " Confidential: all of ε goes to noisy counts."
        if not config.private_steps
        else f" Confidential: {config.private_steps} private steps of about {terms.expected:,.0f} units, "
        f"noise multiplier {config.noise_multiplier:.3g}, clip {config.clip:g}, {config.mechanism}."
    )
    return config, found, line + privately


def counted_units(graph: Graph, config: TrainConfig, ledger: Ledger) -> float:
    """How many units there are, about.

    Reads confidential data: the number of units. Releases: that number with Gaussian noise, charged before it is drawn.
    """
    if config.insecure_noise_seed is not None:
        ledger.charge(non_private("the noise was drawn from a given seed"), "insecure noise")
    meter = Meter(ledger, source(secure=config.secure_noise, insecure_seed=config.insecure_noise_seed))
    exact = np.array([len(np.unique(units(graph)))])
    noisy = meter.release(exact, Asked(1.0, COUNT_NOISE), "noisy number of confidential units")
    return max(FEWEST, float(noisy[0]))


def settled_defaults(
    graph: Graph, public: Graph, config: TrainConfig, count: float
) -> tuple[TrainConfig, str]:
    """Every setting but the noise, for so many units (a noisy number), and the line about the ordinary part."""
    statements = len(public.train) or int(count)
    scorer = models.model_class(config.model)
    chosen = (_text_defaults if config.text is not None else _defaults)(config, graph, public, count)
    config, line = complete(chosen, public, scorer, statements)
    refuse(config)
    return config, line


def _defaults(config: TrainConfig, graph: Graph, public: Graph, count: float) -> TrainConfig:
    """Settings of the private part that were left open, from public facts.

    Few steps over all statements, with shrunk rows, where unrestricted statements have done most of the work: on the
    relations they never speak of if there are any, else — carefully — on everything. Where nothing is unrestricted, or
    where a distance would have to learn such relations, all of the budget goes to noisy counts, unless the user says
    something about steps (docs/benchmarks.md has the figures).
    """
    mixed, new = len(public.train) > 0, len(unknown_relations(graph)) > 0
    tables = config.private_parameters or ("relations" if mixed and new else "all")
    mechanism = config.mechanism or ("dense" if mixed and config.private_optimiser != "sgd" else "lazy")
    optimiser = config.private_optimiser or ("sgd" if mechanism == "lazy" else "row-adagrad")
    few = mixed and mechanism == "dense"
    rate = config.sample_rate or (1.0 if few else min(1.0, max(0.02, 1024 / count)))
    correct = few and tables != "relations"
    steps, size = math.ceil(10 / rate), 1.0 if optimiser == "sgd" else 0.1
    if few and rate == 1 and optimiser == "row-adagrad":
        steps, size = (CORRECT_STEPS, CORRECT_SIZE) if correct else (LEARN_STEPS, LEARN_SIZE)
    asked = config.prior == "none" or any(getattr(config, name) is not None for name in OF_STEPS)
    silent = models.model_class(config.model).silent_at_zero
    steps_help = mixed and (silent or not new)  # elsewhere they lower what counts alone reach
    alone = config.model == "marginals" or not (steps_help or asked)
    chosen: dict[str, Any] = {
        "prior": config.prior or ("none" if few and not new else "marginals"),
        "delta": config.delta or DELTA,
        "private_parameters": tables,
        "mechanism": mechanism,
        "clip": config.clip or 1.0,
        "sample_rate": rate,
        "private_optimiser": optimiser,
        "private_steps": config.private_steps if config.private_steps is not None else steps,
        "private_learning_rate": config.private_learning_rate or size,
        "shrinkage": config.shrinkage or ("rows" if few else "none"),
        "order": config.order or ("unrestricted-first" if few else "interleaved"),
    }
    if correct and config.private_negatives is None:
        chosen["private_negatives"] = CORRECT_NEGATIVES
    if alone:
        chosen |= {"prior": "marginals", "private_steps": 0}
    if chosen["order"] == "interleaved":  # averaging would add the noise of all rows at every look
        chosen["averaging"] = config.averaging if config.averaging is not None else 0.0
    if not mixed and config.epochs is None and not alone:
        chosen["epochs"] = max(1, round(chosen["private_steps"] * rate))
    return config.with_values(**chosen)


def _text_defaults(config: TrainConfig, graph: Graph, public: Graph, count: float) -> TrainConfig:
    """The same where entities are made from descriptions: a projection and the relations, by many steps of few units.

    Where unrestricted statements have taught them first, steps are smaller.
    """
    mixed = len(public.train) > 0
    rate = config.sample_rate or min(1.0, max(TEXT_RATE, 1024 / count))
    chosen: dict[str, Any] = {
        "prior": "none",
        "delta": config.delta or DELTA,
        "private_parameters": config.private_parameters or "all",
        "mechanism": "dense",
        "clip": config.clip or 1.0,
        "sample_rate": rate,
        "private_optimiser": config.private_optimiser or "adam",
        "private_steps": config.private_steps
        if config.private_steps is not None
        else math.ceil(TEXT_PASSES / rate),
        "private_learning_rate": config.private_learning_rate or (TEXT_CORRECT if mixed else TEXT_SIZE),
        "private_negatives": config.private_negatives
        or max(1, min(TEXT_NEGATIVES, int((~graph.held_out).sum()) // 2)),
        "shrinkage": config.shrinkage or "none",
        "order": config.order or ("unrestricted-first" if mixed else "interleaved"),
        "averaging": config.averaging if config.averaging is not None else 0.0,
        "regulariser": "none",
        "text_width": config.text_width or TEXT_WIDTH,
    }
    if not mixed and config.epochs is None:
        chosen["epochs"] = max(1, round(chosen["private_steps"] * rate))
    return config.with_values(**chosen)


def refuse(config: TrainConfig) -> None:
    """Raise for settings under which the promise would not hold."""
    mechanism_class(config.mechanism or "lazy").refuse(
        config.private_optimiser or "sgd", config.shrinkage == "rows"
    )
    if config.delta is not None and config.delta > 1e-3:
        raise PrivacyError(
            f"delta {config.delta:g} would allow the promise to fail for one unit in {1 / config.delta:.0f}: choose 1e-5 or less."
        )


def terms_of(graph: Graph, config: TrainConfig, count: float) -> Terms:
    """What the noise of a configuration is measured by; ``count`` is the noisy number of units."""
    per_unit = graph.marks.per_unit if graph.marks is not None else 1
    facts = {"units": count, "per_unit": per_unit, "entities": len(graph.entities)}
    return terms_of_facts(facts, config)


def terms_of_facts(facts: Mapping[str, Any], config: TrainConfig) -> Terms:
    """The same from what a run's config.yaml says."""
    rate = config.sample_rate or 1.0
    expected = max(1.0, rate * float(facts["units"]))
    return Terms(
        config.noise_multiplier or 1.0,
        rate,
        expected,
        int(facts["per_unit"]),
        int(facts["entities"]),
        config.shrinkage == "rows",
    )


def _noise(config: TrainConfig, terms: Terms, counting: Counting, ledger: Ledger) -> float:
    """The noise multiplier that keeps (ε, δ); for mechanisms without a guarantee, the one their papers would take."""
    mechanism = mechanism_class(config.mechanism or "lazy")
    already = [event for event in ledger.events if event["event"] != "non-private"]
    if config.prior == "marginals":
        already += counting.events(config.prior_noise or 1.0)
    if config.clip_quantile is not None:
        already.append(quantile.event(terms.expected / terms.rate))
    if not config.private_steps:
        return 1.0

    def events(noise: float) -> list[Event]:
        if mechanism.guarantee == "dp":
            return [*already, *all_steps(config, replace(terms, noise_multiplier=noise))]
        return [*already, repeated(config.private_steps or 0, sampled(terms.rate, gaussian(noise)))]

    return calibrate(events, config.epsilon or 1.0, config.delta or DELTA)


def _prior_noise(config: TrainConfig, counting: Counting, ledger: Ledger) -> float:
    """The noise of the counts: all of the budget if nothing else is learnt, else a fixed share of it."""
    already = [event for event in ledger.events if event["event"] != "non-private"]
    alone = calibrate(
        lambda noise: [*already, *counting.events(noise)], config.epsilon or 1.0, config.delta or DELTA
    )
    return alone if not config.private_steps else alone / math.sqrt(PRIOR_SHARE)


def private_plan(
    graph: Graph,
    public: Graph,
    model: Model,
    config: TrainConfig,
    streams: Streams,
    ledger: Ledger,
    count: float,
    epochs: int,
    described: Described | None = None,
) -> PrivatePlan:
    """The plan of a settled configuration, with fresh noise; its private steps are spread over so many epochs."""
    noise = source(
        secure=config.secure_noise, insecure_seed=config.insecure_noise_seed, threads=config.threads or 1
    )
    terms = terms_of(graph, config, count)
    given = (graph, public, model, config, streams, ledger, terms, Meter(ledger, noise), epochs)
    if described is not None:
        from veilgraph.train.private.text import PrivateTextPlan

        return PrivateTextPlan(*given, described=described)
    return PrivatePlan(*given)
