"""What a user who names only ε gets: open settings of private steps, from public facts."""

from __future__ import annotations

import math
from typing import Any

from veilgraph import models
from veilgraph.account.epsilon import DELTA
from veilgraph.account.promise import RELIABLE, RESPOND
from veilgraph.config import TrainConfig
from veilgraph.errors import PrivacyError, UsageError
from veilgraph.load.graph import Graph
from veilgraph.mark.rules import unknown_relations
from veilgraph.train.defaults import complete
from veilgraph.train.mechanisms import mechanism_class

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


def settled_defaults(
    graph: Graph, public: Graph, config: TrainConfig, count: float
) -> tuple[TrainConfig, str]:
    """Every setting but the noise, for so many units (a noisy number), and the line about the ordinary part."""
    statements = len(public.train) or int(count)
    scorer = models.model_class(config.model)
    derived = _text_defaults if config.text is not None else _defaults
    chosen = (_answers_defaults if config.mechanism == RESPOND else derived)(config, graph, public, count)
    if chosen.mechanism == RESPOND:
        statements = len(public.train) + int(count)
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
        "delta": DELTA if config.delta is None else config.delta,
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
        "delta": DELTA if config.delta is None else config.delta,
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


def _answers_defaults(config: TrainConfig, graph: Graph, public: Graph, count: float) -> TrainConfig:
    """The same where cells are asked about: no steps; counts where only they suggest what to ask.

    (``count`` plays no part.)
    """
    pointless = [name for name in (*OF_STEPS, "prior_noise") if name != "mechanism" and not config.open(name)]
    if pointless:
        raise UsageError(
            f"mechanism respond takes no private steps, so {', '.join(pointless)} would do nothing. Leave it out."
        )
    if config.text is not None or config.encoder is not None:
        raise UsageError("mechanism respond learns rows of a table: leave --text and --encoder out.")
    if config.epsilon is None:
        raise UsageError("mechanism respond needs --epsilon.")
    if config.epsilon > RELIABLE and not config.accept_reached:
        sure = 100 / (1 + math.exp(-config.epsilon))
        raise PrivacyError(
            f"mechanism respond reaches what it promises: at epsilon {config.epsilon:g} whoever sees an answer can rely on it in "
            f"{sure:.4g} of 100 cases, where other mechanisms with this epsilon stay far from it. If that is what you want to publish, "
            "say so with --accept-reached; else choose epsilon 2.19 or less (90 of 100), or another mechanism."
        )
    new = len(unknown_relations(graph)) > 0 or not len(public.train)
    return config.with_values(
        prior=config.prior or ("marginals" if new else "none"),
        delta=DELTA if config.delta is None else config.delta,
        private_steps=0,
    )


def refuse(config: TrainConfig) -> None:
    """Raise for settings under which the promise would not hold."""
    if config.mechanism == RESPOND:
        return
    mechanism_class(config.mechanism or "lazy").refuse(
        config.private_optimiser or "sgd", config.shrinkage == "rows"
    )
    if config.delta is not None and config.delta > 1e-3:
        raise PrivacyError(
            f"delta {config.delta:g} would allow the promise to fail for one unit in {1 / config.delta:.0f}: choose 1e-5 or less."
        )
