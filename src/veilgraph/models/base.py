"""What every scorer is: a composition and a similarity.

``score(head, relation, tail) = similarity(compose(head, relation), tail)`` and, from the other side,
``similarity(compose_inverse(tail, relation), head)``. From these two functions come, for all models alike, scoring
against every entity, exact top-k and closed-form gradients. A scorer that does not fit is a ``GenericModel``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from veilgraph.errors import ConfigError
from veilgraph.models.similarity import DOT, Similarity

Range = tuple[float, float, str]  # low, high, "log" | "linear"
SearchSpace = Mapping[str, Range | tuple[object, ...] | list[object]]

LINEAR_SPACE: SearchSpace = {  # for dot-product models
    "learning_rate": (0.02, 0.5, "log"),
    "regulariser_weight": (1e-4, 0.3, "log"),
    "batch": [256, 512, 1024],
    "dropout": (0.0, 0.5, "linear"),
}
DISTANCE_SPACE: SearchSpace = {  # for distance models
    "learning_rate": (3e-4, 3e-2, "log"),
    "margin": (2.0, 24.0, "linear"),
    "temperature": (0.25, 2.0, "log"),
    "batch": [256, 512, 1024],
}


class Model(ABC):
    """One scorer of one dimension: knows shapes and formulas, holds no parameters."""

    name: ClassVar[str]
    formula: ClassVar[str]
    citation: ClassVar[str]
    multiple_of: ClassVar[int] = 1  # what the dimension must be divisible by
    defaults: ClassVar[Mapping[str, Any]] = {}
    search_space: ClassVar[SearchSpace] = {}
    similarity: Similarity = DOT
    separable: ClassVar[bool] = True  # False: GenericModel
    learns: ClassVar[bool] = True  # False: the prior alone (marginals)
    silent_at_zero: ClassVar[bool] = (
        False  # a relation of zeros scores all entities alike, and can learn from there
    )

    def __init__(self, dimension: int, *, norm: int = 1) -> None:
        if dimension < self.multiple_of or dimension % self.multiple_of:
            raise ConfigError(
                f"{self.name} needs a dimension that is a multiple of {self.multiple_of}, found {dimension}. "
                f"Try {max(self.multiple_of, round(dimension / self.multiple_of) * self.multiple_of)}."
            )
        self.dimension, self.norm = dimension, norm
        self.relation_scale: Tensor | None = None  # a factor per relation on every score (TransM)

    # --- shapes and start ---------------------------------------------------------------------------------------
    @property
    def entity_width(self) -> int:
        """Numbers stored for one entity."""
        return self.dimension

    @property
    def relation_width(self) -> int:
        """Numbers stored for one relation."""
        return self.dimension

    def initialise(self, entities: int, relations: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Fresh entity and relation tables."""
        return (
            normal(rng, entities, self.entity_width, 1e-3),
            normal(rng, relations, self.relation_width, 1e-3),
        )

    def weights(self, rng: np.random.Generator) -> dict[str, Tensor]:
        """Parameters shared by all statements (none for most models)."""
        return {}

    def prepare(self, triples: np.ndarray, relations: int) -> None:
        """Take from the training statements what the formula needs (TransM's weights); most models need nothing."""

    # --- the formula --------------------------------------------------------------------------------------------
    @abstractmethod
    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        """Where the tail is expected: ``[b, entity_width], [b, relation_width] → [b, entity_width]``."""

    @abstractmethod
    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        """Where the head is expected."""

    # --- what attackers look at -----------------------------------------------------------------------------------
    def link(self, head: Tensor, tail: Tensor) -> Tensor | None:
        """``[n, v]`` what leads from heads to tails, alike for statements of one relation that were learnt; None: nobody has said yet.

        Attacks ask it. Where it is None they say that they are blind, instead of guessing and reading their failure as safety.
        """
        return None

    def leads(self, relation: Tensor) -> Tensor | None:
        """``[n, v]`` rows of relations as what they lead by, on the scale of ``link`` or any multiple of it."""
        return None

    def query(self, source: Tensor, relations: Tensor, index: Tensor, inverse: bool) -> Tensor:
        """The query vectors of a batch: ``relations[u, w]`` are its distinct relation rows, ``index[b]`` says which."""
        rows = relations.index_select(0, index)
        return self.compose_inverse(source, rows) if inverse else self.compose(source, rows)


class GenericModel(Model):
    """A scorer that is not a composition and a similarity: trained by automatic differentiation on gathered rows."""

    separable = False

    @abstractmethod
    def score(self, head: Tensor, relation: Tensor, tail: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        """Scores of broadcast rows: ``[b, k|1, w], [b, 1, w], [b, k|1, w] → [b, k]``."""

    def compose(self, head: Tensor, relation: Tensor) -> Tensor:
        raise TypeError(f"{self.name} has no composition: use score()")

    def compose_inverse(self, tail: Tensor, relation: Tensor) -> Tensor:
        raise TypeError(f"{self.name} has no composition: use score()")


def normal(rng: np.random.Generator, rows: int, width: int, scale: float) -> Tensor:
    """A table of Gaussian starting values."""
    return torch.from_numpy(rng.standard_normal((rows, width), dtype=np.float32)).mul_(scale)


def uniform(rng: np.random.Generator, rows: int, width: int, bound: float) -> Tensor:
    """A table of starting values between −bound and bound."""
    return torch.from_numpy(rng.random((rows, width), dtype=np.float32)).mul_(2 * bound).sub_(bound)


def complex_product(a: Tensor, b: Tensor, *, conjugate: bool = False) -> Tensor:
    """a · b (or a · b̄) over complex numbers stored as (real half, imaginary half)."""
    a_re, a_im = a.chunk(2, -1)
    b_re, b_im = b.chunk(2, -1)
    if conjugate:
        return torch.cat([a_re * b_re + a_im * b_im, a_im * b_re - a_re * b_im], -1)
    return torch.cat([a_re * b_re - a_im * b_im, a_re * b_im + a_im * b_re], -1)
