"""What a federation agrees on before its first round."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from veilgraph import models
from veilgraph.config import PRIVATE_ONLY, TrainConfig
from veilgraph.errors import ConfigError
from veilgraph.federate.strategies import strategy

AGGREGATES = ("mean", "trimmed")
OWN = (*PRIVATE_ONLY, "epsilon", "delta", "noise_multiplier", "drop_confidential", "prior", "seed", "threads")
DIMENSION = 128
MOST_STEP = 10.0
LARGEST = 1e6  # of a number in a row: beyond, nothing that is learnt is left, and sums may overflow


@dataclass(frozen=True)
class Terms:
    """Said by the server, and checked by every client: no server can change what a client promises about its data."""

    strategy: str = "fede"
    rounds: int = 40
    local_epochs: int = 3
    own_epochs: int = (
        0  # of every client by itself after the last round, never sent: shared rows become its own again
    )
    aggregate: str = "mean"  # over the clients that hold a row; trimmed: without the lowest and the highest
    server_step: float = (
        1.0  # rows go so far towards what was averaged; beyond 1 undoes some of what averaging slows down
    )
    validate_every: int = 5  # rounds; 0 never
    seed: int = 0  # of the first rows
    training: dict[str, Any] = field(default_factory=dict)  # settings of TrainConfig, the same for everybody

    def __post_init__(self) -> None:
        strategy(self.strategy)
        for name, low in (
            ("rounds", 1),
            ("local_epochs", 1),
            ("own_epochs", 0),
            ("validate_every", 0),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= 1_000_000:
                raise ConfigError(f"{name} must be a whole number, {low} or more; found {value!r}.")
        step = self.server_step
        if not isinstance(step, (int, float)) or isinstance(step, bool) or not 0 < step <= MOST_STEP:
            raise ConfigError(f"server_step must be a number above 0, at most {MOST_STEP:g}; found {step!r}.")
        if self.aggregate not in AGGREGATES:
            raise ConfigError(f"aggregate must be one of {', '.join(AGGREGATES)}; found {self.aggregate!r}.")
        own = sorted(set(OWN) & set(self.training))
        if own:
            raise ConfigError(f"{', '.join(own)}: that is every client's own to say, not the federation's.")
        strategy(self.strategy).check(TrainConfig.of(self.training))

    @classmethod
    def of(cls, text: str) -> Terms:
        """From a message; an error for anything that is not among the terms."""
        try:
            found = json.loads(text)
            known = {one.name for one in fields(cls)}
            if (
                not isinstance(found, dict)
                or not set(found) <= known
                or not isinstance(found.get("training", {}), dict)
            ):
                raise ValueError("unknown words")
        except ValueError as error:
            raise ConfigError(f"the terms of the federation cannot be read: {error}.") from None
        return cls(**found)

    def text(self) -> str:
        """For a message."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def shape(self) -> dict[str, Any]:
        """The settings on which all rows must agree: model, dimension, norm, reciprocal."""
        config = TrainConfig.of(self.training)
        scorer = models.model_class(config.model)
        many = scorer.multiple_of
        reciprocal = (
            scorer.defaults.get("reciprocal", True) if config.reciprocal is None else config.reciprocal
        )
        return {
            "model": config.model,
            "dimension": config.dimension or max(many, DIMENSION // many * many),
            "norm": config.norm,
            "reciprocal": bool(reciprocal),
        }

    def settings(self, own: dict[str, Any]) -> dict[str, Any]:
        """Of one client's training: the shared ones, and what only it may say."""
        private = TrainConfig.of(own).private
        return {
            "schedule": "linear",
            **({"order": "interleaved"} if private else {}),
            **self.training,
            **self.shape,
            **own,
            "epochs": self.rounds * self.local_epochs + self.own_epochs,
            "validate_every": 0,  # the federation does
            "averaging": 0.0,  # rows are averaged over clients instead
        }
