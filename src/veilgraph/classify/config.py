"""The settings of one classification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from veilgraph import registry
from veilgraph.account.epsilon import DELTA
from veilgraph.errors import ConfigError, UnknownNameError
from veilgraph.models.gcn import SCORES, Recipe, recipe_of, score

FEW = 1000  # entities to learn from
WAYS = ("heads", "tails", "both")
ALWAYS = (
    "seed", "threads", "guarantee", "epsilon", "delta", "secure_noise", "insecure_noise_seed", "drop_confidential",
)  # fmt: skip
NETWORK = (  # of the network without a guarantee
    "model", "score", "bases", "dimension", "layers", "alpha", "by_others", "hidden", "dropout", "learning_rate", "penalty",
    "epochs",
)  # fmt: skip


@dataclass(frozen=True)
class ClassifyConfig:
    """How a network is built and trained, and what is promised about the graph."""

    model: str = "kegcn"
    score: str | None = None  # of KE-GCN's messages; the recipe's, if not given
    bases: int = 0  # relation matrices are mixtures of so many; 0: as the recipe says
    dimension: int = 32
    layers: int = 5
    alpha: float | None = None  # weight of messages; the recipe's, if not given
    by_others: bool = True  # in the first layer a node is told by its neighbours alone
    hidden: float = 0.95  # share of nodes whose row is hidden while training
    dropout: float = 0.0
    learning_rate: float = 0.02
    penalty: float = 0.0  # on the nodes' rows
    epochs: int = 100
    several: bool = (
        False  # whether an entity may have several labels, where labels are protected (else they say so)
    )
    seed: int = 0
    threads: int | None = None
    drop_confidential: bool = False  # a baseline: unrestricted statements alone
    # --- with a guarantee ---------------------------------------------------------------------------------------------
    guarantee: str = "none"  # or one of guarantees/: label, edge, node
    epsilon: float | None = None
    delta: float = DELTA
    into: str = (
        "heads"  # edge: which ends of a statement hear of each other, release by release: heads, tails, both
    )
    places: int = 256  # numbers that say where a node is in the public part of the graph
    hops: int = 32  # how far they are smoothed
    steps: int = 300  # label, node: private steps
    sample_rate: float = 0.1
    clip: float = 1.0
    secure_noise: bool = False
    insecure_noise_seed: int | None = None  # for tests: ε is infinite

    def __post_init__(self) -> None:
        recipe_of(self.model)
        if self.score is not None:
            score(self.score)
            if self.model != "kegcn":
                raise ConfigError(f"score belongs to kegcn: {self.model} is {self.model} by its own.")
        for name, low, high in (
            ("dimension", 1, 4096), ("layers", 1, 16), ("bases", 0, 4096), ("epochs", 1, 100_000), ("seed", 0, 2**63 - 1),
            ("hidden", 0, 0.99), ("dropout", 0, 0.99), ("learning_rate", 1e-9, 100), ("penalty", 0, 100),
            ("delta", 1e-300, 0.1), ("places", 1, 4096), ("hops", 0, 1000), ("steps", 1, 100_000), ("sample_rate", 1e-6, 1),
            ("clip", 1e-9, 1e6),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} must be between {low:g} and {high:g}; found {value!r}.")
        many = SCORES[self.recipe.score].multiple_of
        if self.dimension % many:
            raise ConfigError(
                f"score {self.recipe.score} needs a dimension that is a multiple of {many}; found {self.dimension}."
            )
        if any(way not in WAYS for way in self.ways):
            raise ConfigError(f"into is a list of {', '.join(WAYS)}, with commas; found {self.into!r}.")
        self._check_promise()

    def _check_promise(self) -> None:
        known = registry.names("guarantees")
        if self.guarantee not in ("none", *known):
            raise UnknownNameError(
                "guarantee", self.guarantee, known, hint=f"There are: none, {', '.join(known)}."
            )
        if (self.guarantee == "none") != (self.epsilon is None):
            raise ConfigError(
                "--guarantee says what is protected and --epsilon how much may be told about it: give both, or none."
            )
        if self.epsilon is not None and not 0 < self.epsilon <= 1000:
            raise ConfigError(f"epsilon must be above 0, at most 1000; found {self.epsilon!r}.")
        if self.drop_confidential and self.guarantee != "none":
            raise ConfigError("drop_confidential reads nothing confidential: it needs no guarantee.")

    @property
    def ways(self) -> list[str]:
        """Who hears of whom, release by release."""
        return self.into.split(",")

    @property
    def recipe(self) -> Recipe:
        """Which network that is."""
        found = recipe_of(self.model)
        if self.score is not None:
            found = replace(found, score=self.score)
        if self.alpha is not None:
            found = replace(found, alpha=self.alpha)
        return found.with_bases(self.bases)


def refuse_unread(settings: Mapping[str, Any]) -> None:
    """Raise for settings that would be ignored: what somebody asks for is done, or refused."""
    name = str(settings.get("guarantee", "none"))
    if name != "none" and name not in registry.names("guarantees"):
        return  # said elsewhere
    reads = NETWORK if name == "none" else registry.find("guarantees", name).reads
    unread = [f"--{key.replace('_', '-')}" for key in settings if key not in (*reads, *ALWAYS)]
    if unread and name == "none":
        raise ConfigError(
            f"{', '.join(unread)} would do nothing: without --guarantee a network is trained that does not read it. Leave it out, or say "
            "what is to be protected."
        )
    if unread:
        raise ConfigError(
            f"{', '.join(unread)} would do nothing: --guarantee {name} does not train that network. It reads "
            f"{', '.join('--' + key.replace('_', '-') for key in reads)}. Leave the rest out."
        )


def derived(labelled: int, guarantee: str = "none") -> dict[str, Any]:
    """Settings nobody chose, by the number of entities that are learnt from: few labels reach no further than two steps.

    Where that number is protected (label, node), nothing depends on it.
    """
    if guarantee in ("label", "node"):
        return {"hops": 128, "learning_rate": 0.1}
    few = {"layers": 2, "hidden": 0.5, "epochs": 40}
    return few if labelled < FEW else {"layers": 5, "hidden": 0.95, "epochs": 100}
